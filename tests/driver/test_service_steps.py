"""One step of a roller, on a device whose time the test moves."""

from types import SimpleNamespace
from typing import Any

import pytest

from sabot_cli.service import jogging
from sabot_driver.errors import WrongRole
from sabot_driver.jogging import LEASE_S, ROLLER_OF
from sabot_protocol.host.messages import Jog, Part


class LeasedRoller:
    """A roller of 1 m/s under a lease. Answers take ``way_s``; the order to stop comes ``late_s`` later."""

    def __init__(self, way_s: float, late_s: float) -> None:
        self.now = 100.0
        self.way_s, self.late_s = way_s, late_s
        self.began = self.ends = 0.0

    def ask(self, jog: Jog, timeout: float, credential: object = None) -> None:
        self.now += self.way_s
        if jog.amount == 0:
            self.now += self.late_s
            self.ends = min(self.ends, self.now)
        elif credential is not None:
            self.began, self.ends = self.now, self.now + LEASE_S
        elif self.now > self.ends:
            raise WrongRole("jog", None, 0)
        else:
            self.ends = self.now + LEASE_S

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def sensors(self) -> Any:
        self.now += self.way_s
        turned = int((min(self.now, self.ends) - self.began) * 1_000_000) if self.began else 0
        return SimpleNamespace(rollers_um=dict.fromkeys(ROLLER_OF.values(), turned))


WAYS = [(0.001, 0.0), (0.001, 5.0), (0.1, 5.0), (0.24, 5.0), (0.3, 0.0)]


@pytest.mark.parametrize(("way_s", "late_s"), WAYS)
def test_a_step_ends_within_a_second_also_if_the_order_to_stop_is_late(
    monkeypatch: pytest.MonkeyPatch, way_s: float, late_s: float
) -> None:
    roller = LeasedRoller(way_s, late_s)
    monkeypatch.setattr("time.monotonic", lambda: roller.now)
    who: Any = SimpleNamespace(client=roller, timeout=10.0, credential=object(), sensors=roller.sensors)
    step = jogging.jog_step(who, Part.FEED, 1, jogging.MOST_STEP_S, roller.wait)
    assert step.turned_um is not None
    assert 0.24e6 < step.turned_um <= 1e6
    assert step.turned_um / 1e6 <= step.seconds + way_s <= 1.0 + way_s
