"""Sentences that the session and the device make by themselves, as templates for the catalogues.

English pages show such a sentence as it came. For another language it is found again by its template, and its
values are put into the translation. A sentence that no template fits is shown as it came.
"""

import re
from collections.abc import Mapping
from functools import cache

from sabot_serve import phrases
from sabot_serve.phrases import N_, Say

TEMPLATES = (
    # needs
    N_("the machine does not answer: check its cable and power; play goes on then"),
    N_("a dealer signs in"),
    N_("open the table"),
    N_("countersign row %(row)s of the record"),
    N_("countersign %(what)s (row %(row)s)"),
    N_("the void of round %(round)s by %(who)s: %(why)s"),
    N_("the stub of round %(round)s, counted by %(who)s"),
    N_("the fault cleared in round %(round)s by %(who)s: %(fault)s"),
    N_("the fault cleared by %(who)s: %(fault)s"),
    N_("what %(who)s did: %(kind)s"),
    N_("empty the machine: every card inside is shuffled again"),
    N_("a card may lie in the shoe's path: open the shoe's door, look, close it, then purge"),
    N_("nothing came out: look into the shoe's path once more and say that it is empty"),
    N_("the machine is set to another game: set it to this table's"),
    N_("bring a new pack with %(back)s backs"),
    N_("take %(back)s off the table: without a shuffler one pack is played"),
    N_("take %(back)s off the table: %(why)s"),
    N_("make %(back)s known to the machine"),
    N_("release %(back)s, which is held: %(why)s"),
    N_("%(back)s came out of the machine: order it shuffled again"),
    N_("lay %(back)s into the tray"),
    N_("take the stack of seat %(seat)s"),
    N_("take the stack of the dealer"),
    N_("take the stub"),
    N_("expose the hands, settle as shown"),
    N_("type the hands as they lie"),
    N_("%(count)s seen, %(expected)s expected: count the hands and say whether it was misdealt"),
    N_("the table is idle: say when somebody wants to play"),
    N_("no more bets"),
    N_("no more bets: say which seats bet"),
    N_("the dealer calls the floor: %(why)s"),
    N_("decide the dispute about round %(round)s: %(why)s"),
    N_("confirm or decline the dealer's correction of round %(round)s"),
    N_("confirm machine %(serial)s, and that no card is left in %(before)s"),
    N_("machine %(serial)s answers, not %(before)s: service says that it is installed"),
    N_("confirm this table PC: it continues record %(before)s"),
    N_("the %(unit)s cannot be used: cover it or put its sign on it"),
    N_("the machine is out of order: service repairs it and returns it to use"),
    N_("settle the wagers as shown"),
    N_("take the round's cards out of the machine"),
    N_("collect the cards"),
    N_("choose another way of dealing"),
    N_("inspect %(back)s"),
    N_("verify the dealer's inspection of %(back)s"),
    N_("spread %(back)s"),
    N_("wash %(back)s"),
    N_("stack %(back)s"),
    # card by card, and by hand
    N_("let the machine deal a round without wagers"),
    N_("take the card for %(hand)s"),
    N_("take the cards that are left out of the exit tray"),
    N_("take the rest of the shoe out of the exit tray"),
    N_("take the cards out of the exit tray"),
    N_("a card came face up: say which; the next card takes its place"),
    N_("turn the four cards, announce the points"),
    N_("turn the four cards, announce the points, type the cards"),
    N_("type the four cards as they lie"),
    N_("type the %(hand)s's third card"),
    N_("deal the %(hand)s's third card and type it"),
    N_("show the new shoe's first card and say which it is; as many as it counts are burned with it"),
    N_("show the new shoe's first card, burn as many as it counts, and say which it is"),
    N_("lay %(back)s into the machine's shoe, shut the door, and let the machine take it"),
    N_('announce "last hand"'),
    N_("%(cards)s was seen: it opens a round without wagers"),
    N_("collect the vigorish of seat %(seat)s: %(cents)s cents"),
    N_("wait: the progressive controller names the winner of its Must Hit meter"),
    N_("look at %(back)s, which was shuffled by hand: are the cards mixed evenly?"),
    N_("%(who)s cuts %(back)s, at least %(top)s from the top, %(bottom)s from the bottom"),
    N_("place the second cover card of %(back)s, at least %(bottom)s above the bottom"),
    N_("deal three cards to each hand, one card after the other"),
    N_("deal four cards: Player, Banker, Player, Banker, one card after the other"),
    N_("expose the hands and type each as it lies"),
    N_("count the stub, or put it into the discard rack"),
    N_("count the stub"),
    N_("take %(back)s into the hand"),
    N_("put %(back)s into the manual shoe"),
    N_("%(back)s may not be dealt so: order it shuffled again"),
    N_("the shoe is over: put its cards into the discard rack"),
    N_("shuffle %(back)s by hand"),
    N_("finish the shuffle of %(back)s: one single stack"),
    N_("take %(back)s out of the machine and order it shuffled by hand"),
    N_(
        "%(back)s stopped the shuffler %(times)s times: look for a damaged card; "
        "take the pack off the table, or order it shuffled again"
    ),
    N_("'%(what)s' does not fit this table: %(why)s. Look at the cards and the machine"),
    N_("a round cannot begin: '%(what)s' of the machine does not fit the table (row %(row)s)"),
    # what the dealer says aloud
    N_("Player %(player_points)s, Banker %(banker_points)s"),
    N_("Player %(player_points)s, Banker %(banker_points)s: tie hand"),
    N_("Player %(player_points)s, Banker %(banker_points)s: Banker wins"),
    N_("Player %(player_points)s, Banker %(banker_points)s: Player wins"),
    N_("Player %(player_points)s, Banker %(banker_points)s: Banker wins, %(called)s"),
    N_("Player %(player_points)s, Banker %(banker_points)s: Player wins, %(called)s"),
    N_("the machine opened no round: %(why)s"),
    # why a pack must leave
    N_("it jams"),
    N_("%(count)s cards instead of %(expected)s"),
    N_("card missing in round %(round)s"),
    N_("card extra in round %(round)s"),
    N_("its hours are over by the machine's clock"),
    N_("its hours are over"),
    N_("the machine takes no deck with this number"),
    N_("no one knows it here"),
    N_("it must leave"),
    # the steps of a fault, as the device shows them
    N_("open the %(unit)s door"),
    N_("take out every card"),
    N_("close it"),
    N_("mark out of order"),
    N_("call service"),
    N_("take out that deck: it leaves the table"),
    N_("take out every card, sort the decks by their backs"),
    N_("take out every card and the foreign one"),
    N_("take out every card, turn the one face up"),
    N_("let it cool"),
    N_("open the %(unit)s door, take out every card"),
    N_("check the supply"),
    N_("take out every card: nobody vouches for them"),
)
VALUES: Mapping[str, str] = {
    **phrases.BACKS,
    **phrases.CHOICES,
    "the dealer": N_("the dealer"),
    "the player": N_("the Player"),
    "the banker": N_("the Banker"),
    "the floor is wanted": N_("the floor is wanted"),
    "damaged": N_("damaged"),
    "card missing": phrases.CHOICE_DETAILS["card_missing"],
    "card extra": phrases.CHOICE_DETAILS["card_extra"],
    "floor order": N_("order of the floor"),
}
"""Values of templates that are words themselves."""
SEAT = N_("seat %(seat)s")


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Each template with what finds it again; templates with fewer values come first."""
    found = []
    for template in TEMPLATES:
        parts = re.split(r"%\((\w+)\)s", template)
        texts = [re.escape(each) if at % 2 == 0 else _any(each) for at, each in enumerate(parts)]
        found.append((re.compile("".join(texts)), template))
    found.sort(key=lambda each: each[1].count("%("))
    return tuple(found)


def _any(name: str) -> str:
    """What finds a value again: points are a number, other values any words."""
    return rf"(?P<{name}>\d+)" if name.endswith("_points") else f"(?P<{name}>.+?)"


def template_of(text: str) -> str | None:
    """The template that a sentence was made from; None if none fits."""
    return next((template for pattern, template in _patterns() if pattern.fullmatch(text)), None)


def in_words(say: Say, text: str) -> str:
    """A sentence of the session or the device in the reader's language."""
    if say is str:
        return text
    for pattern, template in _patterns():
        match = pattern.fullmatch(text)
        if match is not None:
            return say(template) % {name: _value(say, each) for name, each in match.groupdict().items()}
    return _value(say, text)


def _value(say: Say, text: str) -> str:
    known = VALUES.get(text) or VALUES.get(text.lower())
    if known is not None:
        return say(known)
    seat = re.fullmatch(r"seat (\d+)", text)
    if seat is not None:
        return say(SEAT) % {"seat": seat[1]}
    template = template_of(text)
    return text if template is None else in_words(say, text)
