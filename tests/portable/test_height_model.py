"""The stack as its heights tell it: exact on even cards, lifted by odd ones, strict about numbers."""

from sabot_firmware.height_model import HeightModel


def built(thicknesses):
    """A stack of cards, each laid on the others, measured without any error."""
    stack = HeightModel()
    stack.reset(300)
    height = 0
    for card, thickness in enumerate(thicknesses):
        height += thickness
        assert stack.grows(height)
        stack.grown(card, height)
    return stack


def test_gaps_of_even_cards_are_where_their_mean_has_them():
    for thickness in (240, 300, 345):
        stack = built([thickness] * 52)
        assert stack.card_um == thickness
        for below in range(53):
            assert stack.gap_um(below) == thickness * below


def test_a_packet_of_one_card_more_or_less_never_fits():
    for thickness in (240, 300, 345):
        stack = built([thickness] * 30)
        for below in range(31):
            assert stack.fits(stack.gap_um(below), thickness * below)
            assert stack.fits(stack.gap_um(below), thickness * below + 60)
            assert not stack.fits(stack.gap_um(below), thickness * (below + 1))
            assert not stack.fits(stack.gap_um(below), thickness * (below - 1))


def test_none_or_two_cards_are_not_one():
    stack = built([300] * 10)
    assert stack.grows(3300)
    assert stack.grows(3400)
    assert not stack.grows(3000)
    assert not stack.grows(3600)
    thin = built([225] * 10)
    assert not thin.grows(2250 + 450)  # two, although not half more than two cards of 300 would be
    assert HeightModel().cards == 0


def test_a_warped_card_lifts_what_lies_above_it():
    stack = built([300] * 20)
    stack.learn(5, stack.gap_um(5), 1500)  # the packet it was laid on was measured before
    stack.grown(5, 20 * 300 + 390)
    for below in (1, 3, 5):
        assert abs(stack.gap_um(below) - 300 * below) <= 15
    for below in (6, 10, 15, 20):
        assert abs(stack.gap_um(below) - 300 * below - 90) <= 45  # of 90; the rest may be the reading's
    stack.grown(2, 22 * 300 + 90)
    for below in (7, 12):
        assert abs(stack.gap_um(below) - 300 * below - 90) <= 45


def test_what_is_measured_is_learnt():
    stack = built([300] * 20)
    before = abs(stack.gap_um(10) - 3060)
    stack.learn(10, stack.gap_um(10), 3060)
    assert abs(stack.gap_um(10) - 3060) < before
    assert abs(stack.gap_um(9) - 2700) <= 30
    stack.learn(0, stack.gap_um(0), 50)
    stack.learn(20, stack.gap_um(20), 6050)
    assert stack.gap_um(0) == 0
    assert stack.gap_um(20) == 6000  # the ends are measured in another way


def test_too_many_warped_cards_are_refused_and_fewer_make_it_stricter():
    stack = built([300] * 20)
    height = 6000
    assert stack.fits(stack.gap_um(10), 3110)
    for card in range(20):
        height += 400
        if not stack.grows(height):
            break
        stack.grown(20 + card, height)
    assert 2 <= card <= 6
    assert not stack.fits(stack.gap_um(10), stack.gap_um(10) + 110)


def test_a_new_stack_knows_nothing_of_the_last():
    stack = built([300] * 20 + [390])
    stack.learn(10, stack.gap_um(10), 3100)
    stack.reset(300)
    assert not any(stack._at)
    assert not any(stack._off)
    assert stack.cards == stack.height_um == stack._uneven == 0
