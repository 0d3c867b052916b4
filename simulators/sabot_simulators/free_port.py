"""A TCP port for a server that is stopped and started again at the same place."""

import socket
from random import SystemRandom

FIRST, END = 20_000, 32_000
"""Below the ports that the system takes for outgoing connections, which could take one of these meanwhile."""
TRIES = 100


def free_port() -> int:
    """A port of 127.0.0.1 that is free now. OSError if none of many is."""
    for port in SystemRandom().sample(range(FIRST, END), TRIES):
        with socket.socket() as made:
            try:
                made.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"{TRIES} ports from {FIRST} to {END} are all in use")
