"""The simulated mechanism: it knows where every card really is."""
