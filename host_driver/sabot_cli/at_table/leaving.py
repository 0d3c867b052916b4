"""What becomes of a round that is open when a program leaves its table."""

from sabot_cli.at_table.lines_printer import LinesPrinter
from sabot_cli.at_table.table_face import TableFace

OPEN_STATES = ("betting", "dealing", "drawing", "counting", "revealing", "settling")
WORDS = {
    "closed": "closed",
    "between": "open, between two rounds",
    "idle": "open, and no one plays",
    "betting": "bets are open",
    "dealing": "cards are dealt",
    "drawing": "cards are drawn",
    "counting": "stacks and stub are counted",
    "revealing": "the hands are dealt and not exposed",
    "settling": "wagers are being settled",
    "collecting": "settled; its cards are not collected",
    "voided": "void; its cards are not collected",
}
"""What a state of the table means, for people."""


def standing(table: TableFace) -> str:
    """Where the table is, in a line."""
    shown = table.snapshot()
    state, playing, dealer = shown["table"]["state"], shown["round"], shown["table"]["dealer"]
    words = WORDS.get(state, state)
    if playing is not None and state not in ("between", "closed", "idle"):
        words = f"round {playing['round_id']}: {words}"
    text = f"table {table.name}, {table.rules.name}: {words}"
    return f"{text}; {dealer} deals" if dealer and state != "closed" else text


def say_open_round(table: TableFace, printer: LinesPrinter) -> None:
    """Say what happens to the round in play."""
    shown = table.snapshot()
    state, playing = shown["table"]["state"], shown["round"]
    if state == "closed":
        printer.print("The table is closed.")
        return
    if playing is None or state not in OPEN_STATES:
        printer.print("No round is open. The table stays as it is; 'sabot play' goes on with it.")
        return
    number = playing["round_id"]
    if table.own_client is None:
        words = f"Round {number} goes on: another program runs this table."
    elif table.ends_with_us:
        words = f"Round {number} is lost: this emulated machine and its record end with the program."
    else:
        words = (
            f"Round {number} stays open ({WORDS.get(state, state)}). Leave cards and wagers as they lie. "
            "'sabot play' goes on with it where it is."
        )
    printer.print(words, "yellow")
