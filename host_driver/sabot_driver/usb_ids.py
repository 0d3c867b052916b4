"""How a device names itself on USB."""

VENDOR = 0x1209  # pid.codes, for open hardware
PRODUCT = 0x5AB0  # asked for, not yet granted: see docs/driver.md
INTERFACE_CLASS = 0xFF  # vendor specific
INTERFACE_SUBCLASS = 0x5A
INTERFACE_PROTOCOL = 0x01
ENDPOINT_OUT = 0x01
ENDPOINT_IN = 0x81
PACKET_SIZE = 64  # full speed, as an RP2040 has
