"""The words of the pages: templates for needs, acts and states. Every phrase is marked for translation.

A need or an act that is not here is shown with the session's own words, so new ones appear without a change.
"""

from collections.abc import Callable, Mapping
from typing import Any

Say = Callable[[str], str]
"""Translates a phrase; English is the phrase itself."""


def N_(phrase: str) -> str:  # noqa: N802 - gettext's name for a phrase that is translated later
    """Mark a phrase for the catalogues."""
    return phrase


WORDS: Mapping[str, str] = {
    "open_table": N_("CLOSED"),
    "sign_in": N_("SIGN IN"),
    "link": N_("NO LINK"),
    "set_game": N_("SET GAME"),
    "receive_pack": N_("NEW %(back)s"),
    "register_pack": N_("REGISTER %(back)s"),
    "remove_pack": N_("REMOVE %(back)s"),
    "order_shuffle": N_("SHUFFLE %(back)s"),
    "feed": N_("LAY IN %(back)s"),
    "release": N_("%(back)s HELD"),
    "empty_machine": N_("EMPTY"),
    "purge": N_("PURGE"),
    "inspect_path": N_("LOOK INSIDE"),
    "out_of_order": N_("OUT OF ORDER"),
    "bets": N_("BETS"),
    "take_stack": N_("TAKE"),
    "take_stub": N_("TAKE STUB"),
    "determine": N_("%(count)s SEEN"),
    "expose": N_("EXPOSE"),
    "type_hands": N_("TYPE HANDS"),
    "countersign": N_("SIGN"),
    "floor_comes": N_("FLOOR CALLED"),
    "player_arrives": N_("IDLE"),
    "mark_out_of_order": N_("MARK IT"),
    "decide_dispute": N_("DISPUTE"),
    "confirm_correction": N_("CORRECTION"),
}
"""The one word of a need, by its kind."""
STEPS: Mapping[str, str] = {
    "inspect": N_("INSPECT %(back)s"),
    "verify": N_("VERIFY %(back)s"),
    "spread": N_("SPREAD %(back)s"),
    "wash": N_("WASH %(back)s"),
    "stack": N_("STACK %(back)s"),
}
"""The word of a step that prepares a pack."""
FAULTS: Mapping[str, str] = {
    "misfeed": N_("JAM"),
    "double_feed": N_("JAM"),
    "card_stuck": N_("JAM"),
    "insertion_failed": N_("JAM"),
    "motor_stall": N_("JAM"),
    "door_opened": N_("DOOR OPEN"),
    "count_wrong": N_("WRONG COUNT"),
    "wrong_deck": N_("WRONG DECK"),
    "foreign_card": N_("FOREIGN CARD"),
    "face_up_card": N_("FACE UP"),
    "power_lost": N_("POWER LOST"),
    "stopped": N_("STOPPED"),
}
"""The word of a fault; FAULT for any other."""
FAULT = N_("FAULT")
SENTENCES: Mapping[str, str] = {
    "open_table": N_("open the table"),
    "sign_in": N_("sign in"),
    "link": N_("The machine does not answer: check its cable and power."),
    "set_game": N_("set the machine to this table's game"),
    "receive_pack": N_("bring a new pack with %(back)s backs"),
    "register_pack": N_("make %(back)s known to the machine"),
    "remove_pack": N_("%(back)s: %(why)s. Remove it"),
    "order_shuffle": N_("%(back)s came out: order it shuffled again"),
    "feed": N_("lay %(back)s into the tray"),
    "empty_machine": N_("empty the machine; all cards are shuffled again"),
    "out_of_order": N_("Cover the machine or put its sign on it; call service."),
    "take_stub": N_("take the stub"),
    "determine": N_("%(count)s seen, %(expected)s expected: count the hands"),
    "expose": N_("expose the hands, settle as shown"),
    "type_hands": N_("type the hands as they lie"),
}
"""What to do, by the kind of need."""
SPECIAL: Mapping[str, str] = {
    "inspect": N_("inspect %(back)s"),
    "verify": N_("verify the dealer's inspection of %(back)s"),
    "spread": N_("spread %(back)s"),
    "wash": N_("wash %(back)s"),
    "stack": N_("stack %(back)s"),
    "bets": N_("take bets, then close them"),
    "bets_new": N_("touch each seat that bets"),
    "take_seat": N_("take the stack of seat %(seat)s"),
    "take_dealer": N_("take your own stack"),
    "fault": N_("clear the %(place)s: %(fault)s"),
}
ROLES: Mapping[str, str] = {
    "dealer": N_("Dealer"),
    "floor": N_("Floor"),
    "service": N_("Service"),
}
ACTS: Mapping[str, str] = {
    "open_table": N_("Open the table"),
    "close_table": N_("Close the table"),
    "sign_in": N_("Sign in"),
    "sign_out": N_("Sign out"),
    "call_floor": N_("Call floor"),
    "receive_pack": N_("Pack received"),
    "register_pack": N_("Register"),
    "inspect": N_("Inspected"),
    "verify": N_("Verified"),
    "spread": N_("Spread"),
    "wash": N_("Washed"),
    "stack": N_("Stacked"),
    "remove_pack": N_("Removed"),
    "order_shuffle": N_("Order a shuffle"),
    "no_more_bets": N_("No more bets"),
    "expose": N_("Exposed, settled"),
    "type_hands": N_("Type the hands"),
    "determine": N_("Determine"),
    "report_face_up": N_("Card face up in the shoe"),
    "report_wrong_number": N_("Wrong number of cards"),
    "report_shoe_failed": N_("Shoe did not deal"),
    "void_round": N_("Void the round"),
    "hold": N_("Keep these cards out of the tray (hold)"),
    "release": N_("Release the cards"),
    "countersign": N_("Countersign"),
    "set_game": N_("Set the game"),
    "clear_fault": N_("Steps done"),
    "empty_machine": N_("Empty the machine"),
    "purge": N_("Purge"),
    "path_inspected": N_("Path is empty"),
    "floor_comes": N_("Floor is here"),
    "change_method": N_("Deal in another way"),
    "play_one_pack": N_("Play with one pack"),
    "sit": N_("A player takes a seat"),
    "leave": N_("A player leaves"),
    "return_bets": N_("Give all bets back"),
    "forfeit": N_("A hand is forfeit"),
    "abandon": N_("A player left the wagers"),
    "idle": N_("Nobody plays"),
    "player_arrives": N_("A player arrives"),
    "open_dispute": N_("Screen is wrong (dispute)"),
    "decide_dispute": N_("Decide the dispute"),
    "propose_correction": N_("Propose a correction"),
    "confirm_correction": N_("Confirm the correction"),
    "decline_correction": N_("Decline the correction"),
    "leave_untyped": N_("Leave the cards unknown"),
    "report_unit_failed": N_("Half of the machine failed"),
    "mark_out_of_order": N_("Mark out of order"),
    "repaired": N_("Repaired"),
    "return_to_service": N_("Return to use"),
}
"""What a button says, by its act."""
CHOICES: Mapping[str, str] = {
    "misdealt": N_("Misdealt"),
    "card_missing": N_("Not misdealt"),
    "card_extra": N_("Not misdealt"),
    "covered": N_("Covered"),
    "sign": N_("Has its sign"),
    "shuffler": N_("Shuffler"),
    "shoe": N_("Shoe"),
}
CHOICE_DETAILS: Mapping[str, str] = {
    "misdealt": N_("a hand has a wrong number of cards"),
    "card_missing": N_("a card is missing from the deck"),
    "card_extra": N_("the deck has a card too many"),
}
FIELDS: Mapping[str, str] = {
    "back": N_("Back"),
    "bag": N_("Bag or seal number"),
    "brought_by": N_("Brought by"),
    "why": N_("Reason"),
    "note": N_("Note"),
    "destination": N_("Where it goes"),
    "reason": N_("Reason"),
    "row": N_("Row of the record"),
    "pack_id": N_("Pack"),
    "wagers": N_("Wagers"),
    "hands": N_("Hands"),
    "seat": N_("Seat"),
    "unit": N_("Half of the machine"),
    "surveillance": N_("Surveillance reference"),
    "decision": N_("Decision"),
    "machine_wrong": N_("Was the machine wrong?"),
    "round_id": N_("Round"),
}
TABLE: Mapping[str, tuple[str, str]] = {
    "closed": (N_("CLOSED"), N_("The table is closed.")),
    "between": (N_("WAIT"), N_("The machine makes the next pack ready.")),
    "idle": (N_("IDLE"), N_("Nobody plays.")),
    "betting": (N_("BETS"), N_("Players bet.")),
    "dealing": (N_("DEALING"), N_("The machine deals.")),
    "counting": (N_("COUNTING"), N_("The machine counts the stub.")),
    "revealing": (N_("READING"), N_("The machine tells the cards.")),
    "settling": (N_("SETTLE"), N_("Settle as shown.")),
    "collecting": (N_("WAIT"), N_("The machine makes the next pack ready.")),
    "voided": (N_("VOID"), N_("The round is void: every wager goes back.")),
}
"""Word and sentence of a table that needs nobody."""
PLACES: Mapping[str, str] = {
    "tray": N_("Tray"),
    "feed": N_("Feed roller"),
    "entry": N_("Entry"),
    "insertion": N_("Insertion"),
    "chamber": N_("Chamber"),
    "store": N_("Store"),
    "pusher": N_("Pusher"),
    "shoe": N_("Shoe"),
    "deal": N_("Deal roller"),
    "exit": N_("Exit"),
    "exit_tray": N_("Exit tray"),
    "controller": N_("Controller"),
}
"""The card path, from the tray to the exit tray."""
PACKS: Mapping[str, str] = {
    "received": N_("new"),
    "inspected": N_("inspected"),
    "verified": N_("verified"),
    "spread": N_("spread"),
    "washed": N_("washed"),
    "stacked": N_("stacked"),
    "shuffling": N_("being shuffled"),
    "shuffled": N_("shuffled"),
    "loaded": N_("in the shoe"),
    "playing": N_("in play"),
    "discards": N_("played"),
}
BACKS: Mapping[str, str] = {"red": N_("RED"), "blue": N_("BLUE")}
DO: Mapping[str, str] = {
    "win": N_("PAY"),
    "lose": N_("TAKE"),
    "push": N_("RETURN"),
    "returned": N_("RETURN"),
    "forfeit": N_("TAKE"),
    "abandoned": N_("TAKE"),
}
"""What the dealer does with a wager, by its outcome."""
VIGORISH = N_("VIG")
WAGERS: Mapping[str, str] = {
    "ante": N_("Ante"),
    "tie": N_("Tie"),
    "three-kings": N_("Three Kings"),
    "dragon-bonus": N_("Dragon Bonus"),
    "banker": N_("Banker"),
    "player": N_("Player"),
}


SHORT_WAGERS: Mapping[str, str] = {"three-kings": N_("3 Kings"), "dragon-bonus": N_("Dragon")}
"""Names for a narrow column."""


def plain(name: str) -> str:
    """A name of the program as a reader sees it, where no phrase is known."""
    return name.replace("_", " ").replace("-", " ")


def said(say: Say, phrases: Mapping[str, str], name: str, values: Mapping[str, Any] | None = None) -> str:
    """A phrase in the reader's language; the plain name where there is none."""
    phrase = phrases.get(name)
    if phrase is None:
        return plain(name)
    return say(phrase) % values if values else say(phrase)
