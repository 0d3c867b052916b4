"""Requests to services of this computer, which have no TLS."""

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For ``verify`` of httpx, which otherwise loads every certificate authority for each client: 30 ms each."""
