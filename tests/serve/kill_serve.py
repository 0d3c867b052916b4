"""``make kill-serve``: a table's service is killed (-9) at random moments, pages open, rounds in play.

Afterwards the record is compared with what the pages were told: each confirmed act is on record once, at the
row that was named; no refused act is; no page was told a row that is not there, or a round other than it is.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.serve.acting_page import ActingPage, LookingPage
from tests.serve.served_process import ServedProcess

from sabot_serve.service_client import ServiceClient
from sabot_serve.service_file import find_service
from sabot_session.record import RecordReader
from sabot_session.round_history import RoundEnd, read_round
from sabot_table.ruleset import load
from sabot_table.wager_acceptance import every_wager

PAGES = 3
RECOVER_S = 60.0
ROUND_S = 240.0
LONGEST_RUN_S = 2.5  # between a start and the next kill
STARTING = 0.15  # this share of kills comes while the service starts
IN_AN_ACT = 0.5  # and this share while an act is on its way
ACT_S = 0.03


@dataclass(frozen=True)
class Survived:
    """What a run showed."""

    kills: int
    acts: int
    sent_again: int
    repeated: int
    rounds: int
    rows: int
    reconnections: int
    slowest_s: float
    """From the service's first answer until every page had heard of it, at worst."""


def run(home: Path, kills: int, seed: int, look: Callable[[ServedProcess], None] | None = None) -> Survived:
    """Kill the service so many times, then play one more round; AssertionError if anything is not right.

    ``look`` is called after each restart, when the service answers.
    """
    choose = random.Random(seed)
    with ServedProcess(home, seed) as served:
        served.start()
        served.wait_up()
        pages = [LookingPage(served)]
        for _ in range(PAGES - 1):
            served.token = _invited(served)
            pages.append(LookingPage(served))
        wagers = {
            seat: made for seat, made in every_wager(load("md-three-card-baccarat")).items() if seat < 3
        }
        acting = ActingPage(pages[0], wagers)
        slowest = 0.0
        try:
            for killed in range(kills):
                time.sleep(choose.uniform(0.05, LONGEST_RUN_S))
                if choose.random() < IN_AN_ACT and acting.sending.wait(LONGEST_RUN_S):
                    time.sleep(choose.uniform(0.0, ACT_S))
                served.kill()
                served.start()
                if choose.random() < STARTING and killed + 1 < kills:
                    continue
                served.wait_up()
                began = time.monotonic()
                for each in pages:
                    each.wait_heard(RECOVER_S)
                slowest = max(slowest, time.monotonic() - began)
                if look is not None:
                    look(served)
                if acting.problem is not None:
                    raise AssertionError("the acting page failed") from acting.problem
            before = max(pages[0].rounds, default=0)
            _wait(lambda: max(pages[0].rounds, default=0) > before + 1, acting, pages)
        finally:
            acting.close()
            for each in pages:
                each.close()
        assert served.kill(signal.SIGTERM) == 0
        (path,) = served.files.records()
        return _compare(path, kills, acting, pages, slowest)


def _invited(served: ServedProcess) -> str:
    found = find_service(served.files.table_folder(served.url))
    assert found is not None
    return ServiceClient(found).invite()


def _wait(done: Callable[[], bool], acting: ActingPage, pages: list[LookingPage]) -> None:
    ends = time.monotonic() + ROUND_S
    failing: list[ActingPage | LookingPage] = [acting, *pages]
    while not done():
        for each in failing:
            if each.problem is not None:
                raise AssertionError("a page failed") from each.problem
        words = [each["words"] for each in pages[0].snapshot.get("needs", ())]
        assert time.monotonic() < ends, f"the table stands: {words}"
        time.sleep(0.1)


def _compare(
    path: Path, kills: int, acting: ActingPage, pages: list[LookingPage], slowest_s: float
) -> Survived:
    with RecordReader(path) as record:
        for act_id, row in acting.done.items():
            found = record.act(act_id)
            assert found is not None, f"act {act_id} was confirmed and is not on record"
            assert found.number == row, f"act {act_id} was confirmed as row {row} and is row {found.number}"
        for act_id in acting.refused:
            assert record.act(act_id) is None, f"act {act_id} was refused and is on record"
        rows = list(record.all_rows())
        given: dict[str, list[int]] = {}
        for each in rows:
            if each.row.act_id:
                given.setdefault(each.row.act_id, []).append(each.number)
        for act_id, numbers in given.items():
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"act {act_id} came twice"
        for kind in ("no_more_bets", "expose"):
            once = [each.row.round_id for each in rows if each.row.kind == kind]
            assert len(once) == len(set(once)), f"{kind} is twice on record for a round"
        for page in pages:
            assert page.highest_row <= record.newest(), "a page was told a row that is not on record"
            for round_id, told in page.rounds.items():
                kept = read_round(record, round_id)
                assert (kept.end is RoundEnd.VOID) == bool(told["void_clause"]), f"round {round_id}"
                shown = {str(seat): list(hand) for seat, hand in (told["hands"] or {}).items()}
                held = {str(each.seat): list(each.cards or ()) for each in kept.hands if each.seat}
                assert not shown or shown == held, f"round {round_id}: a page showed {shown}, not {held}"
        return Survived(
            kills,
            len(acting.done),
            acting.sent_again,
            acting.repeated,
            len(record.round_ids()),
            len(rows),
            sum(each.connections for each in pages),
            slowest_s,
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.serve.kill_serve", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), given.kills, given.seed)
    sys.stdout.write(
        f"{found.kills} kills in {time.monotonic() - began:.0f} s, seed {given.seed}: "
        f"{found.acts} acts confirmed, "
        f"{found.sent_again} requests sent again, {found.repeated} of them had been executed before; "
        f"{found.rounds} rounds, {found.rows} rows, {found.reconnections} connections of {PAGES} pages; "
        f"the slowest page heard {found.slowest_s:.1f} s after the first answer. "
        "Nothing is lost, no act is on record twice.\n"
    )


if __name__ == "__main__":
    main()
