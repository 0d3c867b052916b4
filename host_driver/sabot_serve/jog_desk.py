"""Jogging by a held button of a page: the roller turns only while the page proves that it is still held.

A technician's act gives one page a permit for one part. Pressing the button arms a hold; nothing moves yet.
Each renewal carries the token of the answer before it, so the page has heard from the service since it was
sent. The first renewal begins the device's lease, each later one renews it, and nothing else does: the
service has no timer that renews. A renewal that comes too late finds the lease over, and the hold ends.
"""

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sabot_driver.client import Client
from sabot_driver.credentials import Credential
from sabot_driver.jogging import MOST_ELEVATOR_UM, ROLLER_OF, RollerLease
from sabot_protocol.host.messages import Jog, Part
from sabot_web.errors import Refused

PERMIT_S = 60.0  # a permit ends so long after its last use
ARMED_S = 1.0  # between a press and its first renewal
ASK_S = 1.0  # a step that the device has not taken by then is not sent again


@dataclass
class _Permit:
    """What one technician may move from one page."""

    id: str
    page: str
    part: Part
    credential: Credential
    until_s: float


@dataclass
class _Hold:
    """A button that is held: its lease, and the token of the next renewal."""

    lease: RollerLease
    token: str
    armed_s: float
    begun: bool = False


class JogDesk:
    """The one place of a service that jogs. Calls block for a device's answer; use them from threads."""

    def __init__(self, client: Client, now_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now_s = now_s
        self._lock = threading.Lock()
        self._permit: _Permit | None = None
        self._hold: _Hold | None = None

    def allow(self, page: str, part: Part, credential: Credential) -> str:
        """A permit for one part at one page; an earlier one ends, with what it moves."""
        with self._lock:
            self._end()
            self._permit = _Permit(
                secrets.token_urlsafe(18), page, part, credential, self._now_s() + PERMIT_S
            )
            return self._permit.id

    def forbid(self) -> None:
        """No permit is left, and nothing moves."""
        with self._lock:
            self._end()
            self._permit = None

    def press(self, page: str, permit: str, direction: int) -> str:
        """The button of a roller is pressed: the token of the first renewal. Nothing moves before that."""
        with self._lock:
            found = self._checked(page, permit)
            if found.part not in ROLLER_OF or direction not in (1, -1):
                raise Refused(400, "bad_request", "a roller turns forward (1) or back (-1)")
            self._end()
            lease = RollerLease(self._client, found.part, direction, ASK_S)
            self._hold = _Hold(lease, secrets.token_urlsafe(12), self._now_s())
            return self._hold.token

    def renew(self, page: str, permit: str, token: str) -> str:
        """The button is still held: the token of the next renewal. `Refused` once the hold is over."""
        with self._lock:
            found, hold = self._checked(page, permit), self._hold
            if hold is None or not hmac.compare_digest(hold.token.encode(), token.encode()):
                self._end()
                raise _over("this button is not held, or another renewal was newer")
            if not hold.begun:
                if self._now_s() - hold.armed_s > ARMED_S:
                    self._end()
                    raise _over("the page answered too late")
                hold.begun = True
                hold.lease.begin(found.credential)
            elif not hold.lease.renew():
                self._hold = None
                raise _over("the renewal came too late, and the roller has stopped")
            hold.token = secrets.token_urlsafe(12)
            found.until_s = self._now_s() + PERMIT_S
            return hold.token

    def release(self, page: str, permit: str) -> None:
        """The button was released, or the page is hidden: the roller stops."""
        with self._lock:
            self._checked(page, permit)
            self._end()

    def move(self, page: str, permit: str, amount: int) -> None:
        """One step of an axis, which stops by itself at its switch."""
        with self._lock:
            found = self._checked(page, permit)
            most = MOST_ELEVATOR_UM if found.part is Part.ELEVATOR else 1
            if found.part in ROLLER_OF or not 0 <= amount <= most:
                raise Refused(400, "bad_request", f"this part goes from 0 to {most}")
            self._client.ask(Jog(found.part, amount), ASK_S, found.credential)
            found.until_s = self._now_s() + PERMIT_S

    def _checked(self, page: str, permit: str) -> _Permit:
        found = self._permit
        if found is None or found.page != page or not hmac.compare_digest(found.id.encode(), permit.encode()):
            raise Refused(
                403, "no_permit", "this page may jog nothing", "Choose the part and show who you are."
            )
        if self._now_s() > found.until_s:
            self._end()
            self._permit = None
            raise Refused(
                403, "no_permit", "the permit is over", "Choose the part and show who you are again."
            )
        return found

    def _end(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None and hold.begun:
            hold.lease.end()


def _over(why: str) -> Refused:
    return Refused(409, "jog_over", why, "Press the button again.")
