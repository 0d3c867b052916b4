"""The wire as a host's programs see it: typed messages and ``construct`` objects. CPython only."""
