"""Rounds that simulated people play at an emulated table (``sabot play --auto``)."""

import time

from sabot_cli.at_table.device_clock import DeviceClock
from sabot_cli.at_table.leaving import say_open_round
from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.running_table import RunningTable
from sabot_cli.at_table.simulated_people import Staff
from sabot_cli.at_table.table_log import TableLog
from sabot_cli.output import FAULT, NO_DEVICE, NOT_VERIFIED, OK, Output, exit_code
from sabot_driver.errors import SabotError
from sabot_session import acts, dealing_acts
from sabot_session.needs import NeedKind
from sabot_table.errors import RuleViolation

PATIENCE_S = 240.0
"""How long simulated people wait for a machine that does nothing; people wait as long as they like."""
WAIT_S = 0.05
OVER = ("between", "collecting", "voided")


class ShuffleNotProved(SabotError):
    """A shuffle is not the one that the device was bound to."""

    advice = "Take the device out of play. Keep its journal and this table's record (docs/commit-reveal.md)."


class NothingHappens(SabotError):
    """The machine does nothing, and no person can do anything about it."""

    advice = "'sabot status' tells how the machine is; 'sabot fault show' what to do."


def play_simulated(
    table: RunningTable, staff: Staff, output: Output, printer: LinesPrinter, rounds: int, timeout: float
) -> int:
    """Play so many rounds and close the table; the exit code."""
    began = time.monotonic()
    log = TableLog(table, output, printer)
    clock = DeviceClock(table.client, output, printer, timeout)
    stopped: SabotError | None = None
    code = OK
    try:
        _play(table, staff, log, clock, rounds)
    except RuleViolation as refused:
        output.tell("refused", what=refused.what, clause=refused.clause, do=refused.do)
        stopped, code = SabotError(f"{refused.what} ({refused.clause})", refused.do), NOT_VERIFIED
    except ShuffleNotProved as error:
        stopped, code = error, NOT_VERIFIED
    except NothingHappens as error:
        link = any(each.kind is NeedKind.LINK for each in table.run.needs())
        stopped, code = error, NO_DEVICE if link else FAULT
    except SabotError as error:
        if error is table.run.failure:
            raise
        stopped, code = error, exit_code(error)
    except KeyboardInterrupt:
        say_open_round(table, printer)
        raise
    finally:
        words = "" if stopped is None else str(stopped)
        advice = "" if stopped is None else stopped.advice
        log.sum_up(time.monotonic() - began, words, advice)
    return code


def _play(
    table: RunningTable,
    staff: Staff,
    log: TableLog,
    clock: DeviceClock,
    rounds: int,
) -> None:
    moved = time.monotonic()
    while True:
        cursor = table.run.read(lambda session: session.cursor)
        bets_wanted = any(each.kind is NeedKind.BETS for each in table.run.needs())
        told = log.follow()  # after the needs: a round that ends in between is counted before the next begins
        if log.not_proved:
            raise ShuffleNotProved(log.not_proved)
        clock.look()
        _stop_at_unexplained(table)
        enough = len(log.rounds) >= rounds
        if enough and _close(table, staff):
            log.follow()
            return
        if told:
            moved = time.monotonic()
        leave = frozenset({NeedKind.BETS}) if enough or not bets_wanted else frozenset()
        if staff.meet_one(leave) is not None:
            continue
        if any(each.kind is NeedKind.OUT_OF_ORDER for each in table.run.needs()):
            raise NothingHappens("the machine is out of order (MD3 13.E)", OUT_OF_ORDER)
        table.run.wait_changed(cursor, WAIT_S)
        if time.monotonic() - moved > PATIENCE_S:
            needed = "; ".join(each.words for each in table.run.needs()) or "nothing"
            raise NothingHappens(f"nothing has happened for {PATIENCE_S:.0f} s; needed: {needed}")


def _stop_at_unexplained(table: RunningTable) -> None:
    """A person must look at what the machine told and the rules refuse; simulated people cannot."""
    for need in table.run.needs():
        if need.kind is NeedKind.UNEXPLAINED:
            raise RuleViolation(str(need.details["why"]), need.clause, "look at the cards and the machine")


OUT_OF_ORDER = "Cover it or leave its sign on it; play by hand from a manual shoe, or call service."


def _close(table: RunningTable, staff: Staff) -> bool:
    """Close the table if nothing is left to do; whether it is closed."""
    state = table.run.read(lambda session: session.procedure.table.state)
    if state == "settling":
        staff.give(dealing_acts.Settle())
        return False
    left = [each for each in table.run.needs() if each.acts and each.kind is not NeedKind.BETS]
    if state not in OVER or left:
        return False
    try:
        staff.give(acts.CloseTable())
    except (SabotError, RuleViolation):
        return False  # cards are still inside the machine
    return True
