"""``make play``, second part: what a newcomer sees of the machine."""

import pytest
from tests.warm_start import warm_run

pytestmark = pytest.mark.slow


def demo(*arguments: str) -> tuple[int, str]:
    ran = warm_run([*arguments], program="sabot_simulators.machine_demo", timeout=600)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout


def test_two_decks_alternate_and_every_count_is_proved() -> None:
    code, printed = demo("--rounds", "4")
    assert code == 0
    assert "SIMULATOR" in printed
    rounds = [line for line in printed.splitlines() if line.startswith("round ")]
    assert [line.split()[2] for line in rounds] == ["RED", "BLUE", "RED", "BLUE"]
    assert all(line.endswith("21 + stub 31 = 52") for line in rounds)
    assert "4 rounds, 0 void, 6 shuffles, 6 of them proved to be 52" in printed


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("stuck@exit:30", "round 1 is void"),
        ("double_feed@tray:7", "stopped at insertion: double_feed"),
        ("stuck@insertion:110", "stopped at insertion: card_stuck"),
        ("snag@entry:20", "tried again at entry"),
        ("power_cut+40", "the power fails"),
    ],
)
def test_a_fault_is_shown_and_play_goes_on(fault: str, words: str) -> None:
    code, printed = demo("--fault", fault, "--rounds", "3")
    assert code == 0
    assert words in printed
    assert printed.splitlines()[-1].startswith("3 rounds, ")


def test_the_same_seed_shows_the_same_cards() -> None:
    first, second = (demo("--seed", "9", "--rounds", "2")[1].splitlines()[:-1] for _ in range(2))
    assert first == second


def test_a_fault_nobody_knows_says_which_there_are() -> None:
    code, printed = demo("--fault", "gremlin")
    assert code == 2
    assert "double_feed" in printed
