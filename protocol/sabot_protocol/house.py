"""The house that a device belongs to: its public key, the device's site, and how often the device was reset.

The record is in flash, beside the provisioning mark. Presence clears keys and leaves the house: a device that
belongs to one takes a new key only after the house has signed a reset statement for its serial number and
reset count.
"""

MOST_COUNT = 0xFFFFFFFF


class HouseRecord:
    """What the device knows of its house; a board keeps it in flash, this one forgets it."""

    def __init__(self) -> None:
        self.key = b""  # empty: none
        self.site = ""
        self.count = 0
        """How often a reset statement was used."""
        self.damaged = False
        """There was a record, and it cannot be read: nobody can sign a statement for it."""

    def is_bound(self) -> bool:
        """Whether a reset needs the house's signature."""
        return self.damaged or bool(self.key)

    def write(self, key: bytes, site: str, count: int) -> None:
        """Keep it; OSError if that cannot be, and then the record is the old or the new one."""
        self.key, self.site, self.count = key, site, count
        self.damaged = False

    def count_reset(self) -> None:
        """A statement for this count was used: none for it counts again. OSError as in ``write``."""
        if self.key:
            self.write(self.key, self.site, min(self.count + 1, MOST_COUNT))
