"""Randomness: raw noise under health tests, a generator seeded from it, and draws without bias."""
