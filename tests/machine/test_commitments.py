"""Commit and reveal: nothing before its time, nothing again in silence, and every change is found."""

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from tests.machine.tables import BLUE, RED, OwnChance, Table
from tests.sweeps import Amount

from sabot_firmware import shoe, shuffler
from sabot_firmware.rng.device_rng import DeviceRng
from sabot_firmware.rng.draws import Slots
from sabot_firmware.shuffle_commands import MOST_REVEALABLE, Commitment, about
from sabot_protocol.codec import enum_name, enum_number
from sabot_protocol.errors import MemoryFailed
from sabot_protocol.host.shuffle_audit import RevealedShuffle, audit, slots_of
from sabot_simulators.dealer import Dealer
from sabot_simulators.hosted_device import SERIAL, HostedDevice
from sabot_simulators.mechanism.simulated_machine import SimulatedMachine
from sabot_simulators.python_device import PythonDevice

HAND = enum_number("Method", "hand")


class Audited(OwnChance):
    """A table whose host adds a nonce to every shuffle and audits what is revealed."""

    def __init__(self, seed: int, *faults: str, wired: bool = False) -> None:
        super().__init__(seed, *faults)
        if wired:
            Dealer.__init__(self, HostedDevice(self.machine, None))
        self.serial = SERIAL if wired else bytes(8)
        self.nonces = Random(seed + 1)
        self.pledged: dict[int, tuple[int, bytes, bytes, tuple[int, ...]]] = {}

    def feed(self, deck_id: int) -> None:
        """Ask for a commitment, add a nonce, begin."""
        cards, self.decks[deck_id] = self.decks[deck_id], []
        fed = tuple(card.number for card in cards)
        self.machine.load(cards)
        self.device.run_until(lambda: True)
        shuffle_id, commitment = self.device.command("commit_shuffle", deck_id)
        nonce = self.nonces.randbytes(32)
        assert self.device.command("shuffle_with", shuffle_id, nonce) == (shuffle_id,)
        self.pledged[shuffle_id] = deck_id, commitment, nonce, fed

    def revealed(self, shuffle_id: int) -> RevealedShuffle:
        """What the device reveals of a shuffle, next to what the host noted before."""
        ask: Any = self.device.ask if isinstance(self.device, HostedDevice) else self.device.command
        number, deck_id, cards, commitment, seed, nonce = ask("reveal_shuffle", shuffle_id)
        placed: list[int] = []
        while len(placed) < cards:
            placed += ask("shuffle_slots", shuffle_id, len(placed))[2]
        before = self.pledged[shuffle_id]
        assert (number, deck_id, commitment, nonce) == (shuffle_id, *before[:3])
        return RevealedShuffle(
            self.serial, deck_id, number, cards, before[1], before[2], seed, tuple(placed), fed=before[3]
        )


@pytest.mark.parametrize("wired", [False, True])
def test_a_deck_that_is_fed_again_is_revealed_and_fits_to_the_last_card(wired: bool) -> None:
    table = Audited(1, wired=wired)
    assert table.open_table()
    order = tuple(card.number for card in table.machine.shoe)
    assert table.refused("reveal_shuffle", 1) == "not_revealed"
    assert table.play_round()
    table.device.run_until_idle()
    assert table.named("shuffle_revealable") == [(1, 1)]
    shuffle = replace(table.revealed(1), came_out=order)
    assert audit(shuffle) == []
    assert shuffle.placed == tuple(slots_of(shuffle))
    for still_secret in (2, 3):
        assert table.refused("reveal_shuffle", still_secret) == "not_revealed"
        assert table.refused("shuffle_slots", still_secret, 0) == "not_revealed"
    assert table.refused("reveal_shuffle", 4) == "no_such_shuffle"


def test_cards_that_were_tried_again_are_revealed_where_they_lie() -> None:
    table = Audited(3, "misfeed@tray:20", "snag@insertion:30")
    assert table.open_table()
    order = tuple(card.number for card in table.machine.shoe)
    assert table.named("retried")
    assert table.play_round()
    assert audit(replace(table.revealed(1), came_out=order)) == []


def test_any_change_is_found() -> None:
    table = Audited(2)
    assert table.open_table()
    order = tuple(card.number for card in table.machine.shoe)
    assert table.play_round()
    shuffle = replace(table.revealed(1), came_out=order)
    assert audit(shuffle) == []

    def flipped(data: bytes, bit: int) -> bytes:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    for bit in range(256):
        assert audit(replace(shuffle, seed=flipped(shuffle.seed, bit)))
        assert audit(replace(shuffle, nonce=flipped(shuffle.nonce, bit)))
        assert audit(replace(shuffle, commitment=flipped(shuffle.commitment, bit)))
    for bit in range(64):
        assert audit(replace(shuffle, device=flipped(shuffle.device, bit)))
    assert audit(replace(shuffle, shuffle_id=2))
    assert audit(replace(shuffle, deck_id=2))
    assert audit(replace(shuffle, cards=51))
    assert audit(replace(shuffle, placed=shuffle.placed[:-1]))
    for card in range(1, 52):
        slots = list(shuffle.placed)
        slots[card] = (slots[card] + 1) % (card + 1)
        assert f"card {card} was to go" in audit(replace(shuffle, placed=tuple(slots)))[0]
        swapped = list(order)
        swapped[card - 1], swapped[card] = swapped[card], swapped[card - 1]
        assert audit(replace(shuffle, came_out=tuple(swapped)))


def test_an_order_the_device_chose_alone_does_not_pass() -> None:
    table = OwnChance(3)
    assert table.open_table()  # by the plain ``shuffle``
    assert table.play_round()
    _, deck_id, cards, commitment, seed, nonce = table.device.command("reveal_shuffle", 1)
    shuffle = RevealedShuffle(bytes(8), deck_id, 1, cards, commitment, nonce, seed, ())
    placed = tuple(slots_of(shuffle))
    assert audit(replace(shuffle, placed=placed)) == [
        "the host gave no nonce: the device alone chose the order"
    ]


@pytest.mark.slow
def test_many_rounds_of_commit_and_reveal(amount: Amount) -> None:
    """Of one deck through core and mechanism: each is audited, the order of its real cards included."""
    table = Audited(14)
    table.device.run_until_idle()
    table.device.command("set_game", "audit", HAND, 1, 1, 0xFFFF, role="floor")  # the deck stays on the shelf
    deck_id = table.new_deck(RED)
    machine, orders = table.machine, {}
    rounds = amount(60, full=300, campaign=1000)
    for number in range(1, rounds + 2):
        table.feed(deck_id)
        assert table.shuffled()
        table.wait(lambda: table.shuffler_state == shuffler.STORED)
        table.device.controller.shuffler.take_from_shelf()
        table.decks[deck_id], machine.store = machine.store, []
        machine.presence()
        orders[number] = tuple(card.number for card in table.decks[deck_id])
        if number > 1:
            shuffle = table.revealed(number - 1)
            assert audit(replace(shuffle, came_out=orders[number - 1])) == []
            assert audit(replace(shuffle, came_out=orders[number]))
    assert len(table.named("shuffle_revealable")) == rounds
    assert len(set(orders.values())) == rounds + 1


def test_pledges_of_every_size_fit_and_no_two_are_alike() -> None:
    rng = DeviceRng(SimulatedMachine(Random(4)).noise)
    rng.start()
    nonces = Random(5)
    seen: set[bytes] = set()
    for number in range(1, 101):
        cards = (52, 104, 208, 312, 416)[number % 5]
        commitment = Commitment(b"SABOT001", number % 2 + 1, number, cards, rng.fresh_seed())
        nonce = nonces.randbytes(32)
        slots = rng.slots(cards, commitment.seed, nonce, commitment.about)
        placed = tuple(slots.draw(card + 1) for card in range(cards))
        shuffle = RevealedShuffle(
            b"SABOT001",
            commitment.deck_id,
            number,
            cards,
            commitment.digest,
            nonce,
            bytes(commitment.seed),
            placed,
        )
        assert audit(shuffle) == []
        assert audit(replace(shuffle, shuffle_id=number + 1))
        seen |= {bytes(commitment.seed), commitment.digest}
    assert len(seen) == 200


def test_a_revealed_seed_predicts_no_later_shuffle() -> None:
    """Seeds are outputs of a generator that is reseeded in between: none follows from another."""
    table = Audited(6)
    assert table.open_table()
    for _ in range(3):
        assert table.play_round()
    known = table.revealed(3)
    later = table.device.controller.shuffle_commands._completed[-1]
    assert later.shuffle_id > known.shuffle_id
    placed = tuple(later.placed[:52])
    for guess in (known.seed, bytes(a ^ b for a, b in zip(known.seed, known.nonce, strict=True))):
        tried = replace(known, seed=guess, nonce=later.nonce)
        tried = replace(tried, shuffle_id=later.shuffle_id, deck_id=later.deck_id)
        right = sum(a == b for a, b in zip(slots_of(tried), placed, strict=True))
        assert right < 15  # 4.5 by chance
    assert bytes(later.seed) not in (known.seed, bytes(32))


def test_a_restart_needs_a_new_commitment_and_both_are_reported() -> None:
    table = Audited(7, "stuck@insertion:20")
    table.shuffle()
    assert table.shuffler_state == shuffler.JAMMED
    assert [values[1] for values in table.named("shuffle_committed")] == [1]
    assert dropped(table) == [(1, "stopped")]
    assert table.refused("reveal_shuffle", 1) == "no_such_shuffle"
    assert table.refused("shuffle_with", 1, bytes(32)) == "wrong_state"
    table.recover()
    committed = [values[1] for values in table.named("shuffle_committed")]
    assert committed == list(range(1, len(committed) + 1))
    assert len({values[2] for values in table.named("shuffle_committed")}) == len(committed)
    assert table.refused("shuffle_with", 1, bytes(32)) == "no_such_shuffle"


def test_a_host_that_wants_another_commitment_is_seen_to() -> None:
    table = Audited(8)
    table.device.run_until_idle()
    deck_id = table.new_deck(RED)
    first = table.device.command("commit_shuffle", deck_id)
    second = table.device.command("commit_shuffle", deck_id)
    assert first[0] < second[0]
    assert first[1] != second[1]
    assert dropped(table) == [(1, "replaced")]
    table.machine.load(table.decks[deck_id])
    table.device.run_until(lambda: True)
    assert table.refused("shuffle_with", 1, bytes(32)) == "no_such_shuffle"
    table.device.command("shuffle_with", 2, b"n" * 32)
    assert table.refused("shuffle_with", 2, b"m" * 32) == "wrong_state"


def test_a_commitment_is_used_once_and_refused_for_a_deck_that_may_not_be_shuffled() -> None:
    table = Audited(9)
    table.device.run_until_idle()
    assert table.refused("commit_shuffle", 1) == "no_such_deck"
    deck_id = table.new_deck(RED)
    shuffle_id, _ = table.device.command("commit_shuffle", deck_id)
    assert table.refused("shuffle_with", shuffle_id, b"n" * 32) == "tray_empty"
    table.machine.load(table.decks[deck_id])
    table.device.run_until(lambda: True)
    table.device.command("shuffle_with", shuffle_id, b"n" * 32)  # the refusal did not use it up


def test_a_deck_that_leaves_takes_its_order_with_it() -> None:
    table = Audited(10)
    table.shuffle(back=RED)
    table.device.run_until(lambda: table.shoe_state == shoe.READY)
    commitment = table.device.controller.shuffle_commands._completed[0]
    table.device.command("remove_deck", 1, 3, role="floor")
    assert dropped(table) == [(1, "deck_removed")]
    assert not any(commitment.seed)
    assert not any(commitment.placed)
    assert table.refused("reveal_shuffle", 1) == "no_such_shuffle"


def test_a_deck_that_leaves_for_a_wrong_count_takes_its_order_with_it() -> None:
    table = Audited(13, "missing_card@shoe:3")
    assert table.open_table()
    commitment = table.device.controller.shuffle_commands._completed[0]
    table.play_round()
    assert table.named("deck_removed") == [(1, enum_number("RemoveReason", "wrong_count"))]
    assert (commitment.shuffle_id, "deck_removed") in dropped(table)
    assert not any(commitment.seed)


def test_what_can_be_revealed_of_decks_that_left_is_not_kept_for_ever() -> None:
    table = Audited(14, *(f"missing_card@tray:{card}" for card in range(200, 3000, 220)))
    shuffle_commands = table.device.controller.shuffle_commands
    going_on = table.open_table()
    for _ in range(30):
        before = shuffle_commands._completed + shuffle_commands._revealable
        if going_on:
            going_on = table.play_round()
        else:
            table.recover()
            going_on = True
        for each in before:
            assert each in shuffle_commands._completed + shuffle_commands._revealable or not any(each.seed)
        assert len(shuffle_commands._completed) <= 2
        assert len(shuffle_commands._revealable) <= MOST_REVEALABLE
    assert len(table.decks) > 6


def test_what_held_the_order_is_wiped_after_use() -> None:
    table = Audited(11)
    table.device.run_until_idle()
    table.feed(table.new_deck(BLUE))
    commitment = table.device.controller.shuffle_commands._running
    assert commitment is not None
    slots = commitment.slots
    assert slots is not None
    assert any(slots.draw(card) for card in range(1, 53))
    assert table.shuffled()
    assert commitment.slots is None
    assert not any(slots.draw(card) for card in range(1, 53))


def nothing_is_written(name: str, record: bytes) -> None:
    raise MemoryFailed(name)


def test_slots_of_a_shuffle_that_could_not_be_recorded_are_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Audited(19)
    table.device.run_until_idle()
    table.machine.load(table.decks[table.new_deck(BLUE)])
    table.device.run_until(lambda: True)
    shuffle_id, _ = table.device.command("commit_shuffle", 1)
    rng, drawn = table.device.controller.shuffle_commands.rng, []
    slots_of = rng.slots

    def slots(*about: Any) -> Slots:
        drawn.append(slots_of(*about))
        return drawn[-1]

    monkeypatch.setattr(rng, "slots", slots)
    with monkeypatch.context() as failing:
        failing.setattr(table.device.memory, "save", nothing_is_written)
        assert table.refused("shuffle_with", shuffle_id, b"n" * 32) == "memory_failed"
    assert table.shuffler_state == shuffler.IDLE
    (refused,) = drawn
    assert not any(refused.draw(card) for card in range(1, 53))
    table.device.command("shuffle_with", shuffle_id, b"n" * 32)  # the refusal did not use it up
    assert any(drawn[1].draw(card) for card in range(1, 53))


def test_a_power_cut_forgets_every_seed() -> None:
    table = Audited(12)
    assert table.open_table()
    table.device.reboot()
    for shuffle_id in (1, 2):
        assert table.refused("reveal_shuffle", shuffle_id) == "no_such_shuffle"
    assert table.device.controller.persistent.shuffle_id == 2  # numbers go on


def test_what_a_shuffle_is_says_which_device_deck_and_shuffle() -> None:
    each = product((b"DEVICE01", b"DEVICE02"), (1, 2), (1, 2), (52, 104))
    assert len({about(*what) for what in each}) == 16


def test_a_shuffle_of_the_plain_kind_is_committed_to_as_well() -> None:
    table = Table(13)
    assert isinstance(table.device, PythonDevice)
    table.shuffle()
    assert [values[:2] for values in table.named("shuffle_committed")] == [(1, 1)]
    names = [name for name, _ in table.device.reports]
    assert names.index("shuffle_committed") < names.index("deck_counted")


def dropped(table: Table) -> list[tuple[int, str]]:
    """Each shuffle that came to nothing, and why."""
    return [
        (int(values[1]), enum_name("DropReason", int(values[2]))) for values in table.named("shuffle_dropped")
    ]


def test_a_deck_whose_count_is_wrong_takes_its_order_with_it() -> None:
    table = Audited(15)
    assert table.open_table()
    assert table.deal_round()
    table._take()
    table.collect()
    commitment = table.device.controller.shuffle_commands._of(
        table.device.controller.shuffle_commands._completed, 1
    )[0]
    table.machine.removed.append(table.decks[1].pop())
    table.wait(lambda: table.shuffler_state == shuffler.IDLE)
    table.feed(1)
    assert not table.shuffled()
    assert (1, "deck_removed") in dropped(table)
    assert not any(commitment.seed)
    assert table.refused("reveal_shuffle", 1) == "no_such_shuffle"


def test_a_deck_that_leaves_while_it_is_shuffled_leaves_no_seed() -> None:
    table = Audited(16)
    table.device.run_until_idle()
    deck_id = table.new_deck(RED)
    table.feed(deck_id)
    commitment = table.device.controller.shuffle_commands._running
    assert commitment is not None
    table.device.command("remove_deck", deck_id, 3, role="floor")
    assert table.shuffled()
    assert dropped(table) == [(1, "deck_removed")]
    assert not any(commitment.seed)
    assert not any(commitment.placed)
    assert table.device.controller.shuffle_commands._completed == []


def test_pledges_of_decks_long_gone_do_not_pile_up() -> None:
    table = Audited(17)
    table.device.run_until_idle()
    table.device.command("set_game", "audit", HAND, 1, 1, 4, role="floor")
    shuffle_commands, machine = table.device.controller.shuffle_commands, table.machine
    opened = set()
    for _ in range(8):
        deck_id = table.new_deck(RED)
        for _ in range(2):
            table.feed(deck_id)
            assert table.shuffled()
            table.wait(lambda: table.shuffler_state == shuffler.STORED)
            table.device.controller.shuffler.take_from_shelf()
            table.decks[deck_id], machine.store = machine.store, []
            machine.presence()
        opened |= set(shuffle_commands._revealable)
        table.device.command("remove_deck", deck_id, 3, role="floor")
    assert len(opened) == 8
    assert len(shuffle_commands._revealable) == 4
    assert shuffle_commands._completed == []
    assert all(not any(each.seed) for each in opened - set(shuffle_commands._revealable))


def test_nothing_of_the_stack_is_known_once_the_cards_are_in() -> None:
    table = Audited(18)
    stack = table.device.controller.shuffler._stack
    table.shuffle()
    assert stack.cards == 0
    assert not any(stack._at)
    assert not any(stack._off)
