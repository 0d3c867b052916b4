"""A table's session at the command line: ``sabot play`` and the commands that act at a table."""
