"""What can go wrong between a table and the floor, as typed errors."""

from sabot_driver.errors import SabotError


class FloorError(SabotError):
    """The base of the floor's errors."""


class BadName(FloorError, ValueError):
    """A name of a site or a table that a subject cannot hold."""

    advice = "Use 1 to 32 letters a-z, digits and hyphens."


class BadPayload(FloorError, ValueError):
    """A message that this version cannot read."""

    advice = "The archive keeps it in quarantine. See docs/floor.md for the payloads."


class FloorUnreachable(FloorError, ConnectionError):
    """No server of the floor answers, or it refused the connection."""

    advice = "Check the servers' addresses, the credential and the certificate. The table works without it."


class PublisherRefused(FloorError):
    """Another publisher has this table."""

    advice = (
        "End the other program, or give the table another name. After a table PC was replaced: "
        "'sabot floor release TABLE'."
    )


class RowTooLarge(FloorError):
    """A row that no message holds."""

    advice = "The chain's rows wait on the table's disk. Report the row; it needs a larger 'max_msg_size'."


class FloorSettingsDamaged(FloorError, ValueError):
    """The file that names a table's floor cannot be read."""

    advice = "Correct the file; docs/floor.md shows what it looks like."


class NothingMayLeave(FloorError):
    """The rule text lets nothing leave the table."""

    advice = "Run the table without '--floor'."


class WithoutFiles(FloorError):
    """The table's journal is only in memory."""

    advice = "Give the table a name: 'sabot table set NAME --device URL', then 'sabot serve --table NAME'."


class StreamDiffers(FloorError):
    """A stream or a bucket of the floor is there with other settings."""

    advice = "Compare its settings with docs/floor.md, and change them with NATS's own tool on purpose."


class ArchiveFailed(FloorError, OSError):
    """The archive's database cannot be read or written."""

    advice = "Check the database and its disk. The stream keeps the rows; the archive continues by itself."


class ArchiveHeld(FloorError):
    """Another archive works for this site."""

    advice = "One archive is enough: end the other one first."
