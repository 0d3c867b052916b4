"""The power goes at any instant of a round and a shuffle: memory is kept, nothing wrong is claimed.

The round is played once. At each instant everything is remembered; on a copy the power goes and comes back,
and what the device then says is compared with where the cards are; then the round goes on as before.
SABOT_CUTS says how many instants, spread over four parts.
"""

import os
from random import Random

import pytest
from tests.board.table import HANDS, Table

from sabot_firmware import shoe
from sabot_protocol.codec import enum_number
from sabot_simulators.rp2040.pico import Pico
from sabot_simulators.rp2040.snapshot import Snapshot

CUTS = int(os.environ.get("SABOT_CUTS", "100"))
PARTS = 4
ROUND_US = 22_000_000  # a round with the shuffle beside it
POWER_CUT = enum_number("VoidReason", "power_cut")
IN_A_ROUND = (shoe.ROUND_OPEN, shoe.DISPENSING, shoe.STACK_WAITING, shoe.EJECTING)


def cut_and_look(table: Table, further_us: int) -> None:
    """Let it run on for a moment, cut the power, switch it on again, and see what it claims."""
    device = table.device
    device.on_step = lambda: None
    device.run_for(further_us)
    in_a_round = device.shoe_state in IN_A_ROUND
    ended = len(device.named("round_ended"))
    counted = len(device.named("deck_counted"))
    device.power_off()
    device.power_on()
    device.connect()
    device.run_until_idle()
    device.run_for(100_000)
    assert device.resets == 0
    assert len(device.named("deck_counted")) <= counted + 1  # one may have been on its way
    if len(device.named("round_ended")) == ended and in_a_round:
        assert device.named("round_voided") == [(1, POWER_CUT)]
    assert device.shoe_state in (shoe.EMPTY, shoe.UNPROVED, shoe.JAMMED)
    ids, backs, _, _ = device.ask("decks")
    for deck_id, back in zip(ids, backs, strict=True):
        _, cards, proved, places = device.ask("whereabouts", deck_id)
        assert cards == 52
        if proved:
            zones = ("tray", "path", "chamber", "store", "shoe", "exit_tray", "handed_out")
            truth = [table.machine.count(zone, back) for zone in zones]
            assert list(places[1:6]) == truth[1:6], f"deck {deck_id} is claimed to be where it is not"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_cut_at_any_instant_leads_to_no_wrong_claim(
    pico: Pico, opened_saved: Snapshot[Table], part: int
) -> None:
    random = Random(part)
    table = opened_saved.restored().connected()
    device = table.device
    began = table.machine.agenda.now_us
    share_us = ROUND_US // PARTS
    instants = sorted(
        began + part * share_us + random.randrange(share_us) for _ in range((CUTS + PARTS - 1) // PARTS)
    )
    done = 0

    def look() -> None:
        nonlocal done
        while done < len(instants) and table.machine.agenda.now_us >= instants[done]:
            done += 1
            here = Snapshot(pico, "cut", table)
            cut_and_look(here.restored(), random.randrange(4_000))
            pico.restore("cut")

    device.on_step = look
    assert table.dealer.play_round()
    assert done == len(instants)
    assert [values[1:] for values in device.named("round_ended")] == [(1, 52 - 3 * HANDS, 52)]
