"""URL handlers for pyserial; ``serial.protocol_handler_packages`` names this package."""
