"""Four users at a terminal of 80 columns, each at their work; what stays on the screen is kept as text."""

import re
from pathlib import Path

import pytest
from tests.at_table.terminal import COLUMNS, DEALER_PIN, FLOOR_PIN, Open, check_screen
from tests.conformance.targets import Tcp

pytestmark = pytest.mark.slow
ENTER, TAB, CTRL_C = "\r", "\t", "\x03"
MONEY = re.compile(r"\d+\.\d\d\b")
PREPARE = ("inspect {0}", "verify the dealer's inspection", "spread {0}", "wash {0}", "stack {0}")


def test_a_dealer_deals_three_rounds(terminal: Open) -> None:
    """Opening, decks, rounds, a void one, and Ctrl-C in a round."""
    with terminal("play", "--device", "sim://", "--seed", 1, "--players", 2) as table:
        table.do(
            ("FLOOR: open the table", "z"),
            ("'z' does nothing here", "?"),
            ("the floor closes the table", ENTER),
            ("DEALER: a dealer signs in", ENTER),
            ("bring a new pack with red backs", ENTER),
            ("number of the bag or seal", "A-1" + ENTER),
            ("brought by", "Sam" + ENTER),
            ("bring a new pack with blue backs", ENTER),
            ("number of the bag or seal", ENTER),
            ("an answer is needed", "A-2" + ENTER),
            ("brought by", ENTER),
        )
        for back in ("RED", "BLUE"):
            table.do(*((words.format(back), ENTER) for words in PREPARE))
        table.do(
            ("say which seats bet", ENTER),
            ("seats that bet", "9" + ENTER),
            ("there is no such seat", "1 ante 20 tie 5, 2 ante 12.40" + ENTER),
            ("expose the hands", ENTER),
            ("round 1 RED", ""),
            ("DEALER: no more bets (", ENTER),
            ("expose the hands", "w"),
            ("why", ENTER),
            ("give back 12.40", ""),
            ("DEALER: no more bets (", ENTER),
            ("expose the hands", CTRL_C),
        )
        assert table.end() == 130
        assert table.widest() <= COLUMNS
    check_screen("dealer", table.screen())


def test_the_floor_holds_releases_disputes_decides_and_countersigns(terminal: Open, floor_key: Path) -> None:
    """People of the register act: a PIN for each act of the floor, one wrong one among them."""
    pin = ("PIN of floor", FLOOR_PIN + ENTER)
    held = ("floor's key file or badge", ENTER)
    with terminal(
        "play", "--device", "sim://", "--seed", 1, "--players", 2, "--people", "--floor-key", floor_key
    ) as table:
        table.do(
            ("FLOOR: open the table", ENTER), held, ("PIN of floor", "99999" + ENTER),
            ("wrong PIN for flo", ENTER), held, pin,
            ("DEALER: a dealer signs in", ENTER), ("dealer's id or badge", "dana" + ENTER),
            ("PIN of dana", DEALER_PIN + ENTER), ("dealer dana deals", ""),
        )  # fmt: skip
        for back in ("red", "blue"):
            table.do(
                (f"bring a new pack with {back}", ENTER), ("number of the bag", back + ENTER),
                ("brought by", ENTER), held, pin,
            )  # fmt: skip
        for back in ("RED", "BLUE"):
            table.do((f"inspect {back}", ENTER), ("verify the dealer's inspection", ENTER), held, pin)
            table.do(*((words.format(back), ENTER) for words in PREPARE[2:]))
        table.do(
            ("say which seats bet", ENTER), ("seats that bet", ENTER), ("expose the hands", "h"),
            ("why", "a card fell" + ENTER), ("holds the cards of round 1", ENTER), ("round 1 RED", "d"),
        )  # fmt: skip
        table.do(
            ("why", ENTER), ("opened a dispute about round 1", ""),
        )  # fmt: skip
        table.do(
            ("release RED, which is held", ENTER), held, pin, ("released the cards of round 1", ""),
            ("DEALER: no more bets (", TAB), ("decide the dispute about round 1", ENTER),
            ("what surveillance saw", "S-12" + ENTER), ("what the floor decides", "as dealt" + ENTER),
            ("was the machine wrong (y, n)", "maybe" + ENTER), ("'maybe' is neither y nor n", ""),
            ("was the machine wrong (y, n)", "n" + ENTER), held, pin, ("decided the dispute", ""),
            ("DEALER: no more bets (", ENTER), ("expose the hands", "s"),
            ("why", "it stopped" + ENTER), ("VOID", ""),
            ("DEALER: no more bets (", TAB), ("countersign the void of round 2 by", ENTER), held, pin,
            ("countersigned the void", "x"), held, pin, ("flo closed the table", ""),
            ("FLOOR: open the table", "q"),
        )  # fmt: skip
        assert table.end() == 0
        assert table.widest() <= COLUMNS
    check_screen("floor", table.screen())


def test_the_floor_acts_on_rounds_by_commands(terminal: Open, floor_key: Path, tmp_path: Path) -> None:
    """Between two programs at a table: release, dispute, correction by two people, countersignature."""
    target = Tcp(tmp_path)
    device = ("--device", target.listener.url, "--simulator", "--people")
    floor, dealer = ("--floor-key", floor_key), ("--person", "dana")
    pin, dealers_pin = ("PIN of floor", FLOOR_PIN + ENTER), ("PIN of dana", DEALER_PIN + ENTER)
    held = ("floor's key file or badge", ENTER)
    shown: list[str] = []

    def command(
        *arguments: object, pins: tuple[tuple[str, str], ...], code: int = 0, goes_on: bool = False
    ) -> None:
        """Give a command. If the machine goes on at once, where the table stands differs from run to run."""
        with terminal("round", *arguments, *device) as once:
            once.do(*pins)
            assert once.end() == code, once.screen()
            assert once.widest() <= COLUMNS
            words = " ".join(f'"{each}"' if " " in str(each) else str(each) for each in arguments)
            screen = once.screen().replace(str(floor_key), "flo.key")
            if goes_on:
                screen = screen.partition("table SIM00001,")[0]
            shown.append(f"$ sabot round {words.replace(str(floor_key), 'flo.key')}\n{screen}")

    play = ("play", *device, "--players", 2, *floor)
    with terminal(*play) as table:
        table.do(
            ("FLOOR: open the table", ENTER), held, pin, ("DEALER: a dealer signs in", ENTER),
            ("dealer's id or badge", "dana" + ENTER), dealers_pin,
        )  # fmt: skip
        for back in ("red", "blue"):
            table.do((f"bring a new pack with {back}", ENTER), ("number of the bag", back + ENTER))
            table.do(("brought by", ENTER), held, pin)
        for back in ("RED", "BLUE"):
            table.do((f"inspect {back}", ENTER), ("verify the dealer's inspection", ENTER), held, pin)
            table.do(*((words.format(back), ENTER) for words in PREPARE[2:]))
        table.do(("say which seats bet", ENTER), ("seats that bet", ENTER), ("expose the hands", ENTER))
        table.do(("round 1 RED", ""), ("DEALER: no more bets", ENTER), ("expose the hands", "h"))
        table.do(("why", "a card fell" + ENTER), ("holds the cards of round 2", "s"), ("why", "jam" + ENTER))
        table.do(("give back", ""), ("FLOOR: release BLUE, which is held", "q"))
        assert table.end() == 0
    command(1, "dispute", "--why", "seat 2 had more", *dealer, pins=(dealers_pin,))
    command(1, "correct", "--why", "chips", "--wagers", "1 ante 20, 2 ante 40", *dealer, *floor,
            pins=(dealers_pin, pin))  # fmt: skip
    command(1, "correct", "--why", "seat 2 again", "--wagers", "1 ante 20, 2 ante 60", *dealer,
            pins=(dealers_pin,))  # fmt: skip
    command(1, "confirm", *dealer, pins=(dealers_pin,), code=1)
    with terminal("round", 1) as once:
        assert once.end() == 0
        assert once.widest() <= COLUMNS
        waits = once.screen().partition("  corrected once")[2].partition("  who did what")[0]
        waits = re.sub("would get: .*", "would get: RESULTS", waits)  # the cards differ from run to run
        shown.append(f"$ sabot round 1\n[…]\n  corrected once{waits}")
    command(1, "decline", "--note", "S-9 shows 40", *floor, pins=(pin,))
    command(1, "decide", "--surveillance", "S-9", "--decision", "corrected", *floor, pins=(), code=2)
    command(1, "decide", "--surveillance", "S-9", "--decision", "corrected", "--machine-right", *floor,
            pins=(pin,))  # fmt: skip
    command(2, "release", "--note", "looked at", *floor, pins=(pin,), goes_on=True)
    command(2, "countersign", *floor, pins=(("PIN of floor", "1" + ENTER),), code=5)
    command(2, "countersign", *floor, pins=(pin,))
    command(2, "countersign", *floor, pins=(), code=1)
    with terminal("rounds") as once:
        assert once.end() == 0
        shown.append(f"$ sabot rounds\n{once.screen()}")
    target.close()
    check_screen("floor-commands", MONEY.sub("N.NN", "\n".join(shown)))


def test_a_technician_clears_a_jam_and_looks_at_the_machine(terminal: Open) -> None:
    """A card sticks while a deck is fed: the screen says where and what to do. Then the machine itself."""
    shown = []
    with terminal("play", "--device", "sim://?fault=stuck@insertion:9", "--seed", 1) as table:
        table.do(
            ("FLOOR: open the table", ENTER), ("DEALER: a dealer signs in", ENTER),
            ("red backs", ENTER), ("number of the bag", "1" + ENTER), ("brought by", ENTER),
            ("blue backs", ENTER), ("number of the bag", "2" + ENTER), ("brought by", ENTER),
        )  # fmt: skip
        table.do(*((words.format("RED"), ENTER) for words in PREPARE))
        table.do(("STOPPED at the insertion", ""), ("ANYONE: card stuck", ENTER), ("cleared", "q"))
        assert table.end() == 0
        assert table.widest() <= COLUMNS
        shown.append(table.screen())
    for command in (
        ("service", "self-test", "--device", "sim://"),
        ("service", "wear", "--device", "sim://"),
        ("fault", "show"),
    ):
        with terminal(*command) as once:
            code = once.end()
            assert once.widest() <= COLUMNS
            shown.append(f"$ sabot {' '.join(command)}   (exit code {code})\n{once.screen()}")
    check_screen("technician", "\n".join(shown))


def test_a_lab_audits_a_table_from_its_record(terminal: Open, home: Path, tmp_path: Path) -> None:
    """Rounds at a device of its own, then what the record tells: rounds, one round, and proved shuffles."""
    shown = []
    target = Tcp(tmp_path)
    record = home / "journals" / "simulators" / "SIM00001.table.db"
    with terminal("play", "--device", target.listener.url, "--simulator", "--auto", "--rounds", 3,
                  "--players", 1, "--seed", 1) as refused:  # fmt: skip
        assert refused.end() == 2, "a seed is for devices of this program"
    with terminal("play", "--device", target.listener.url, "--simulator", "--auto", "--rounds", 3,
                  "--players", 1) as played:  # fmt: skip
        assert played.end() == 0
        assert played.widest() <= COLUMNS
    target.close()
    for command in (("rounds",), ("round", 9)):
        with terminal(*command) as once:
            code = once.end()
            assert once.widest() <= COLUMNS
            shown.append(f"$ sabot {' '.join(map(str, command))}   (exit code {code})\n{once.screen()}")
    check_screen("lab", MONEY.sub("N.NN", "\n".join(shown)))
    with terminal("round", 1) as once:
        assert once.end() == 0
        assert once.widest() <= COLUMNS
        assert "no more bets: simulated dealer, simulated (MD3 7.C)" in once.screen()
    with terminal("audit", "--record", record, "--new-decks") as once:
        assert once.end() == 0
        assert "shuffle 1, deck 1: proved, 6 faces" in once.screen()
