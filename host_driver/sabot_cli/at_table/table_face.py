"""One table as a terminal shows it, whichever process runs it."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sabot_driver import Client
from sabot_session.acts import Act
from sabot_session.needs import Need
from sabot_session.outcomes import ActDone
from sabot_session.round_history import Round
from sabot_session.rows import NumberedRow
from sabot_table.ruleset import RuleSet


def who_acts(need: Need) -> str:
    """Who must meet a need, as the last line names them; "" if the machine senses it."""
    if not need.acts:
        return ""
    return "ANYONE" if len(need.roles) > 2 else " OR ".join(need.roles).upper()


class TableFace(Protocol):
    """What the terminal needs of a table: needs, acts, a snapshot, and the rows of its record."""

    @property
    def name(self) -> str:
        """The table's name."""

    @property
    def rules(self) -> RuleSet:
        """What is played."""

    @property
    def own_client(self) -> Client | None:
        """The device's client, if this program owns the device."""

    @property
    def boot_id(self) -> int:
        """The device's start before which nothing is told as new."""

    @property
    def ends_with_us(self) -> bool:
        """Whether the table's device and record exist only while this program runs."""

    @property
    def failure(self) -> BaseException | None:
        """What ended the table's session, if anything did."""

    def needs(self) -> list[Need]:
        """What must happen now."""

    def snapshot(self) -> Mapping[str, Any]:
        """The table as it stands; see `sabot_session.snapshot`."""

    def act(self, act_id: str, need_id: str | None, seen: int, credential: object, act: Act) -> ActDone:
        """Give an act; see `TableSession.act`."""

    def rows(self, after: int, *kinds: str) -> Iterable[NumberedRow]:
        """Rows of the record after a number, of these kinds or all."""

    def round(self, round_id: int) -> Round:
        """A round as the record tells it, with what its wagers will pay if they are not settled."""

    def commitment(self, shuffle_id: int) -> tuple[str, str] | None:
        """Commitment and nonce of a shuffle that has begun, in hexadecimal digits; None if not known here."""

    def checkpoints(self) -> list[str]:
        """The newest signed checkpoints of record and journal, as lines that the floor keeps."""
