"""Generated."""

SCHEMA_HASH = b"12345678"
