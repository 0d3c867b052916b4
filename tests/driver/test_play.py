"""``sabot play``: every rule set, typed cards, nonces, versions, hours, and a program that is killed."""

import contextlib
import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from tests.driver.command import Sabot, simulated
from tests.table.operators import royal_9_data
from tests.warm_start import WarmPopen

from sabot_firmware.shuffle_commands import ShuffleCommands
from sabot_protocol.host.shuffle_audit import RevealedShuffle, audit
from sabot_session.record import RecordReader
from sabot_table import ruleset
from sabot_table.cards import card
from sabot_table.coup import Coup
from sabot_table.rule_texts import GameKind
from sabot_table.settlement import settle

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]

SIM = ("play", "--device", "sim://", "--seed", 1, "--json")
MINIS = [name for name in ruleset.names() if ruleset.load(name).game is GameKind.MINI]
STACKS = [name for name in ruleset.names() if ruleset.load(name).game is GameKind.THREE_CARD]


# -- every rule set -----------------------------------------------------------------------------------


@pytest.mark.rule("MDM 5")
@pytest.mark.rule("MDM 8")
@pytest.mark.rule("MDM 9.C")
@pytest.mark.rule("MDM 11.B")
@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("name", MINIS)
def test_mini_baccarat_is_dealt_card_by_card_and_settled(sabot: Sabot, name: str) -> None:
    ran = sabot(*SIM, "--rules", name, "--rounds", 2, "--players", 2)
    assert ran.code == 0, ran.err
    rules = ruleset.load(name)
    assert [each["round"] for each in ran.of("round")] == [1, 2]
    for each in ran.of("round"):
        player, banker = (tuple(card(one) for one in hand) for hand in each["hands"])
        again = settle(rules, {1: _made(each, 1), 2: _made(each, 2)}, Coup(player, banker))
        told = [{key: line[key] for key in line if key != "odds"} for line in each["settlement"]]
        assert told == [line.to_json() for line in again.lines]
        assert {line["wager"] for line in each["settlement"]} == set(rules.offered)
        assert (each["card_source"], each["expected"]) == ("reader", 52 * rules.cards.decks)
    assert bool(ran.of("shoe")) is (rules.text == "MDM"), "only Maryland burns"


def _made(told: dict[str, Any], seat: int) -> dict[str, int]:
    return {line["wager"]: line["stake_cents"] for line in told["settlement"] if line["seat"] == seat}


@pytest.mark.parametrize("name", STACKS)
def test_three_card_rule_sets_are_dealt_and_settled(sabot: Sabot, name: str) -> None:
    ran = sabot(*SIM, "--rules", name, "--rounds", 2, "--players", 2)
    assert ran.code == 0, ran.err
    assert all(each["settlement"] and each["count"] == 52 for each in ran.of("round"))


@pytest.mark.rule("BAC shoe")
def test_the_six_deck_shoe_is_shuffled_and_counted_every_round(sabot: Sabot) -> None:
    ran = sabot(*SIM, "--rules", "baccarat-six-deck", "--rounds", 2, "--players", 1)
    assert ran.code == 0, ran.err
    assert len({each["shuffle_id"] for each in ran.of("round")}) == 2
    assert ran.lines[-1]["shuffles_proved"] >= 2, "counted after every shuffle"


@pytest.mark.rule("MDM 7.A(9)")
def test_royal_9_is_played_by_an_operators_file(sabot: Sabot, tmp_path: Path) -> None:
    royal: Any = royal_9_data()["royal_9"]
    lines = ['extends = "md-mini-baccarat"', 'name = "royal"', "[wagers]", 'royal-9 = { paytable = "A" }']
    lines += ["[royal_9]", f"stake_cents = {royal['stake_cents']}", "[royal_9.personal]"]
    lines += [f'{seat} = "{pair}"' for seat, pair in royal["personal"].items()]
    for name in ("star", "spade", "heart", "must_hit"):
        lines += [f"[royal_9.{name}]", *(f"{key} = {value}" for key, value in royal[name].items())]
    own = tmp_path / "royal.toml"
    own.write_text("\n".join(lines))
    ran = sabot(*SIM, "--rules", own, "--rounds", 2, "--players", 2)
    assert ran.code == 0, ran.err
    for each in ran.of("round"):
        royals = [line for line in each["settlement"] if line["wager"] == "royal-9"]
        assert [line["stake_cents"] for line in royals] == [500, 500]


# -- versions and hours -------------------------------------------------------------------------------


@pytest.mark.rule("WA3 versions")
@pytest.mark.parametrize(
    ("components", "words"),
    [
        ('[components."Sabot simulator"]\nrng = "0.1.1"\n', "rng of Sabot simulator is 0.1.0"),
        ('[components."Sabot simulator"]\nshoe = "1.0"\n', "tells no version of shoe"),
        ("", None),
    ],
)
def test_components_are_checked_before_a_game(
    sabot: Sabot, tmp_path: Path, components: str, words: str | None
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'extends = "wa-three-card-baccarat"\nname = "own"\n{components}')
    ran = sabot(*SIM, "--rules", own, "--rounds", 1)
    if words is None:
        assert ran.code == 0, ran.err
        return
    assert ran.code == 5
    (refused,) = ran.of("refused")
    assert (refused["clause"], words in refused["what"]) == ("WA3 versions", True)
    assert ran.of("round") == []


# -- typed cards --------------------------------------------------------------------------------------


def test_without_a_reader_the_dealer_types_and_it_is_said_so(sabot: Sabot) -> None:
    ran = sabot("play", "--device", "sim://?reader=none", "--seed", 1, "--rounds", 1, "--rules",
                "md-three-card-baccarat", "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    assert {each["card_source"] for each in ran.of("round")} == {"typed"}
    mini = sabot("play", "--device", "sim://?reader=none", "--seed", 1, "--rounds", 1, "--rules",
                 "md-mini-baccarat", "--json")  # fmt: skip
    assert {each["card_source"] for each in mini.of("round")} == {"typed"}


def test_a_deck_with_a_card_twice_is_found_by_the_reader_and_leaves(sabot: Sabot) -> None:
    found = None
    for seed in range(5, 13):  # until the two copies are dealt in one round
        faults = ("--fault", "missing_card@tray", "--fault", "duplicate_card@tray")
        ran = sabot("play", "--device", "sim://", "--seed", seed, "--rounds", 2, *faults, "--rules",
                    "md-three-card-baccarat", "--json")  # fmt: skip
        assert ran.code == 0, ran.out
        found = next((each for each in ran.of("round") if each["void_reason"] == "wrong_number"), None)
        if found is not None:
            assert {line["outcome"] for line in found["settlement"]} == {"returned"}
            assert ran.of("deck_removed")[0]["reason"] == "damaged"
            break
    assert found is not None


# -- nonces -------------------------------------------------------------------------------------------


def test_every_shuffle_is_committed_to_has_our_nonce_and_is_checked(sabot: Sabot) -> None:
    ran = sabot(*SIM, "--rounds", 4)
    committed = {each["shuffle_id"]: each for each in ran.of("shuffle_committed")}
    revealed = ran.of("shuffle_revealed")
    assert len(revealed) >= 2
    assert ran.lines[-1]["shuffles_checked"] == len(revealed)
    for each in revealed:
        before = committed[each["shuffle_id"]]
        assert (each["commitment"], each["nonce"]) == (before["commitment"], before["nonce"])
        shuffle = RevealedShuffle(
            ran.lines[0]["serial"].encode(), each["deck_id"], each["shuffle_id"], each["cards"],
            bytes.fromhex(before["commitment"]), bytes.fromhex(before["nonce"]), bytes.fromhex(each["seed"]),
            tuple(each["placed"]),
        )  # fmt: skip
        assert audit(shuffle) == []
    assert {each["shuffle_id"] for each in ran.of("round")} <= set(committed)
    assert len({each["nonce"] for each in committed.values()}) == len(committed)


def test_a_reveal_that_does_not_fit_ends_with_five(sabot: Sabot, mocker: MockerFixture) -> None:
    honest = ShuffleCommands.reveal

    def lie(self: ShuffleCommands, shuffle_id: int) -> Any:
        *others, seed, nonce = honest(self, shuffle_id)
        return (*others, hashlib.sha256(bytes(seed)).digest(), nonce)

    mocker.patch.object(ShuffleCommands, "reveal", lie)
    ran = sabot(*SIM, "--rounds", 4)
    assert ran.code == 5
    (revealed,) = ran.of("shuffle_revealed")
    assert (revealed["ok"], len(revealed["wrong"]) > 0) == (False, True)


def test_without_a_seed_nonces_cannot_be_foretold(sabot: Sabot) -> None:
    runs = [sabot("play", "--device", "sim://", "--rounds", 1, "--json") for _ in range(2)]
    proofs = [each["nonce"] for ran in runs for each in ran.of("shuffle_committed")]
    assert len(set(proofs)) == len(proofs)


# -- a program that is killed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "speed", "after_s"),
    [
        pytest.param("md-three-card-baccarat", "40", 0.0, id="stacks"),
        pytest.param("md-three-card-baccarat", "40", 0.3, id="stacks-later", marks=pytest.mark.full),
    ],
)
def test_a_killed_program_goes_on_where_the_device_is(
    sabot: Sabot, home: Path, rules: str, speed: str, after_s: float
) -> None:
    with simulated("--tcp", "0", "--seed", "7", "--speed", speed) as url:
        play = ["play", "--device", url, "--simulator", "--rules", rules, "--players", "2"]
        rounds = _killed_in_round(2, [*play, "--rounds", "400", "--json"], home, after_s)
        path = next((home / "journals" / "simulators").glob("*.table.db"))
        open_round = round_in_play(path)
        more = sabot(*play, "--rounds", 2, "--json")
        assert more.code == 0, more.out
    following = more.of("round")
    if open_round is not None:
        assert following[0]["round_id"] == open_round, "the round in play goes on"
    assert more.lines[-1]["void"] == 0, "a program that ends is no reason to void anything"
    ids = [each["round_id"] for each in [*rounds, *following]]
    assert ids == sorted(set(ids)), "no round is settled twice"
    course = [what for what in steps_on_record(path) if what in ("open_bets", "settle", "collect")]
    assert course == ["open_bets", "settle", "collect"] * (len(course) // 3)
    assert len(course) // 3 == ids[-1], "every round once, whatever was on the screen"


def round_in_play(path: Path) -> int | None:
    """The number of the round that is open in a record."""
    with RecordReader(path) as record:
        now = record.load()
    assert now is not None
    playing = json.loads(now.state)["memory"]["round"]
    return None if playing is None else int(playing["round_id"])


def steps_on_record(path: Path) -> list[str]:
    """What was done, by its name."""
    with RecordReader(path) as record:
        return [each.row.kind for each in record.all_rows()]


def _killed_in_round(number: int, arguments: list[str], folder: Path, after_s: float) -> list[dict[str, Any]]:
    """Kill a program (-9) so long after bets were closed in a round; the rounds it had told of."""
    environment = {**os.environ, "SABOT_HOME": str(folder)}
    process = WarmPopen(arguments, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    closed, rounds = 0, []
    for text in process.stdout:
        told = json.loads(text)
        if told["event"] == "round":
            rounds.append(told)
        closed += told["event"] == "no_more_bets"
        if closed == number:
            break
    time.sleep(after_s)
    process.kill()
    rest = process.stdout.read().splitlines()
    process.wait(120)
    process.stdout.close()
    for text in rest:
        with contextlib.suppress(json.JSONDecodeError):  # it was killed while it wrote
            rounds += [json.loads(text)] if json.loads(text)["event"] == "round" else []
    return rounds


def test_a_cover_card_that_may_not_lie_there_is_usage(sabot: Sabot) -> None:
    for cover in (13, 416):
        assert sabot(*SIM, "--rules", "md-mini-baccarat", "--cover", cover).code == 2
    assert sabot(*SIM, "--cover", 20).code == 2
