"""The ``sabot`` command: a thin client of the driver."""
