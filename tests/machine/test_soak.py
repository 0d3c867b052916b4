"""Random faults, a little of ``make soak``: nothing is claimed that is not so, and the soak would notice."""

from io import StringIO

import pytest
from rich.console import Console

from sabot_firmware.stack import Stack
from sabot_simulators import soak as soaking
from sabot_simulators.soak import Findings, soak


def quiet() -> Console:
    return Console(file=StringIO())


@pytest.mark.rule("MD3 5.B")
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_claimed_that_is_not_so(seed: int) -> None:
    found = soak(20, seed, quiet())
    assert not found.wrong
    assert found.claims > 50
    assert sum(found.faults.values()) > 3


def test_a_machine_that_does_not_look_at_the_height_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stack, "grows", lambda stack, height_um: True)
    monkeypatch.setattr(Stack, "fits", lambda stack, below, height_um: True)
    monkeypatch.setattr(soaking, "KINDS", {"aligned_double": ("", ("tray",))})
    assert soak(12, 1, quiet()).wrong


def test_the_bound_is_what_so_many_claims_can_show() -> None:
    assert Findings(claims=3000).upper_bound() == pytest.approx(0.000998, rel=0.01)
    assert Findings().upper_bound() == 1.0
