"""Writes what comes out of the schema: ``python -m sabot_protocol.generate``. CPython only, in a checkout."""
