"""Faces leave the device only when they are no secret any more, and each time an event says to whom."""

from tests.machine.tables import RED, Table

from sabot_firmware import hardware, shoe
from sabot_simulators.mechanism.physical_cards import one_card

NOBODY = 0


def dealt(seed: int, hands: int = 2) -> Table:
    """A table in its first round, with every stack dealt and none of the stub."""
    table = Table(seed, hands=hands)
    table.open_table()
    table.device.command("open_round", 1, 1)
    table.device.command("close_bets", 1, hands)
    for stack in range(1, hands + 1):
        table.device.command("dispense_stack", 1, stack)
        table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
        table.take_stack()
    return table


def test_faces_of_stacks_leave_only_after_the_end_of_the_round() -> None:
    """The hands are secret until all have acted; a host that was taken over asked for them before."""
    table = dealt(1)
    assert table.refused("reveal_round", 1) == "stale"
    assert table.refused("faces", 1, 1) == "stale"
    table.device.command("end_round", 1)
    assert table.refused("reveal_round", 1) == "stale"  # the stub still comes
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    assert table.refused("faces", 1, 1) == "not_revealed"
    table.device.command("reveal_round", 1)
    assert len(table.device.command("faces", 1, 1)[2]) == 3


def test_every_reveal_is_an_event_that_names_the_host() -> None:
    """On the old code faces were told without a trace."""
    table = dealt(2)
    table.device.command("end_round", 1)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    table.device.command("reveal_round", 1)
    assert table.refused("faces", 1, 3) == "stale"
    for stack in (1, 2, 1):
        table.device.command("faces", 1, stack)
    told: list[object] = [*table.named("faces_revealed")]
    assert told == [(1, stack, b"TABLE-PC", NOBODY) for stack in (1, 2, 1)]


def test_dealt_card_by_card_only_draws_that_were_reported_are_told() -> None:
    """The reader sees a card before its draw is complete."""
    table = Table(3)
    table.device.run_until_idle()
    table.device.command("set_game", "mini", 3, 1, 1, 24, role="floor")
    deck_id = table.shuffle()
    table.device.command("deliver_deck", deck_id)
    table.wait(lambda: table.shoe_state == shoe.STUB_WAITING)
    cards = table.machine.take_exit()
    table.device.run_until_idle()
    table.machine.open_door(hardware.SHOE_DOOR)
    table.device.run_until(lambda: True)
    table.machine.load_shoe(cards)
    table.machine.close_door(hardware.SHOE_DOOR)
    table.device.run_until_idle()
    table.device.command("load_shoe", deck_id, role="floor")
    table.device.command("open_round", 1, deck_id)
    assert table.refused("reveal_round", 1) == "bets_open"
    table.device.command("close_bets", 1, 2)
    table.device.command("reveal_round", 1)
    table.device.command("draw_cards", 1, 1, 4)
    table.device.run_for(350_000)
    assert table.device.controller.shoe.dealt > 0
    assert table.refused("faces", 1, 1) == "stale"
    table.wait(lambda: table.shoe_state == shoe.STACK_WAITING)
    assert len(table.device.command("faces", 1, 1)[2]) == 4


def test_the_game_is_not_changed_while_a_card_is_inside() -> None:
    """Another method has other rules for faces: a card in the exit tray did not keep it from being set."""
    table = Table(4)
    table.device.run_until_idle()
    table.machine.put_into_exit([one_card(RED, table.random)])
    table.device.run_until_idle()
    assert table.shoe_state == shoe.EMPTY
    assert table.refused("set_game", "mini", 3, 1, 1, 24, role="floor") == "in_use"
    table.machine.take_exit()
    table.device.run_until_idle()
    table.device.command("set_game", "mini", 3, 1, 1, 24, role="floor")
