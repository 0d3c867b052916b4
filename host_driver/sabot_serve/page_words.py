"""The words that a page's script shows by itself; the page carries them in the reader's language."""

from collections.abc import Mapping

from sabot_serve.phrases import N_, Say

DEALER: Mapping[str, str] = {
    "stale": N_("No news. What you see may be old, and nothing can be sent."),
    "connecting": N_("Connecting"),
    "old": N_("%(seconds)s s old"),
    "live": N_("live"),
    "sign_in": N_("Sign in"),
    "sign_out": N_("Sign out"),
    "nobody": N_("Nobody deals"),
    "deals": N_("Dealer: %(person)s"),
    "you_are": N_("You are %(person)s"),
    "round": N_("Round %(round)s"),
    "person": N_("Id (dealers)"),
    "badge": N_("Badge"),
    "pin": N_("PIN"),
    "key": N_("Key file"),
    "hold": N_("Hold the button to confirm."),
    "seat": N_("Seat %(seat)s"),
    "no_bet": N_("no bet"),
    "next": N_("Next bet %(money)s"),
    "cards": N_("cards"),
    "not_counted": N_("not counted"),
    "hours_left": N_("%(hours)s h %(minutes)s min left"),
    "hours_over": N_("hours are over"),
    "must_leave": N_("must leave the table"),
    "sent": N_("Sending"),
    "no_answer": N_("The service does not answer. The act is sent again with the same number."),
    "not_sent": N_("The act was not sent. Look at the table, then touch again."),
    "failed": N_("The service does not answer."),
    "clear": N_("Clear"),
    "erase": N_("Erase"),
    "more": N_("More for %(wager)s"),
    "less": N_("Less for %(wager)s"),
    "hand": N_("Cards of seat %(seat)s, such as 9S KH 2D"),
    "hand_dealer": N_("Cards of the dealer, such as 9S KH 2D"),
    "called": N_("Floor called"),
    "call": N_("Call floor"),
    "yes": N_("Yes"),
    "no": N_("No"),
    "bets": N_("bets"),
    "amounts_on": N_("Type the amount of each wager"),
    "amounts_off": N_("Seats only: chips are not counted"),
    "countersign": N_("%(count)s rows wait for the floor's signature"),
    "who_what": N_("%(who)s: %(what)s"),
    "refused_not_authenticated": N_("Wrong badge, id or PIN. Enter it again."),
    "refused_pin_delayed": N_("Too many wrong PINs. Wait, then enter it again."),
    "refused_too_many_failures": N_("Too many wrong credentials at this page. Wait a minute."),
    "refused_not_yours": N_("This is for another role. Call the person whose act it is."),
    "refused_need_gone": N_("This is done or no longer needed."),
    "refused_refused": N_("The table has changed. Look at what it needs now."),
    "refused_rule": N_("The rules do not allow this now."),
    "refused_record": N_("The record cannot be written. Call service."),
    "refused_no_dealer": N_("This person is no dealer. Floor and service show who they are at each act."),
    "refused_not_let_in": N_("This browser is no longer let in. Ask for a new token."),
}
"""Words with the prefix ``refused_`` stand for the service's own English sentence in other languages."""
ROUND: Mapping[str, str] = {
    "not_known": "not known",
    "table": "Table",
    "round_round": "Round",
    "round_opened": "Opened (UTC)",
    "round_ended": "Ended (UTC)",
    "round_dealer": "Dealer",
    "round_machine": "Machine",
    "round_deck": "Deck",
    "round_end": "End",
    "round_count": "Count",
    "round_void": "Void",
    "round_held": "Cards held",
    "round_disputes": "Disputes",
    "round_corrected": "Corrected",
    "round_countersign": "Rows to countersign",
    "round_not_told": "Not known",
    "round_open": "open",
    "round_hand": "Hand",
    "round_cards": "Cards",
    "round_points": "Points",
    "round_seat": "Seat",
    "round_wager": "Wager",
    "round_result": "Result",
    "round_money": "Pays",
    "round_row": "Row",
    "round_time": "Time",
    "round_what": "What",
    "round_who": "Who",
    "round_clause": "Clause",
    "round_raw": "As the record has it",
}
"""A round for the floor: these pages are in English."""
PLAYERS: Mapping[str, str] = {
    "round": N_("Round %(round)s"),
    "bead_plate": N_("Bead plate"),
    "big_road": N_("Big road"),
    "big_eye_boy": N_("Big eye boy"),
    "small_road": N_("Small road"),
    "cockroach_pig": N_("Cockroach pig"),
    "bead_banker": N_("B"),
    "bead_player": N_("P"),
    "bead_tie": N_("T"),
}


def dealer_words(say: Say) -> dict[str, str]:
    """The words of the dealer's page."""
    return {name: say(phrase) for name, phrase in DEALER.items()}


def floor_words(say: Say) -> dict[str, str]:
    """The words of the floor's page."""
    return {**dealer_words(say), **ROUND}


def players_words(say: Say) -> dict[str, str]:
    """The words of the players' display."""
    return {name: say(phrase) for name, phrase in PLAYERS.items()}
