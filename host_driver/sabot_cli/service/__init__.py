"""``sabot service``: what a technician does at a machine, with the technician's key."""
