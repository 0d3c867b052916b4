"""Serial numbers as people read and type them."""

from sabot_driver.errors import BadSerial

SIZE = 8


def format_serial(serial: bytes) -> str:
    """Letters and digits as they are; anything else, as a board's chip has it, in hexadecimal."""
    if serial.isalnum() and serial.isascii():
        return serial.decode("ascii")
    return serial.hex().upper()


def parse_serial(text: str) -> bytes:
    """The serial number of a text made by ``format_serial``; BadSerial if it is not one."""
    try:
        serial = bytes.fromhex(text) if len(text) == 2 * SIZE else text.encode("ascii")
    except ValueError:
        serial = b""
    if len(serial) != SIZE:
        raise BadSerial(f"'{text}' is not a serial number")
    return serial
