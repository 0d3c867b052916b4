"""The words that the scripts of the wall's pages show. The pages are in English."""

from sabot_serve.page_words import floor_words

OWN = {
    "stale": "No news from the wall's service. What you see may be old.",
    "who": "You are %(person)s",
    "nobody": "Nobody is signed in",
    "take": "Take",
    "taking": "Taking",
    "give_back": "Give back",
    "taken": "%(person)s, %(ago)s",
    "taken_by": "Taken by %(person)s",
    "escalated": "ESCALATED",
    "escalated_again": "ESCALATED TWICE",
    "sign_in_to_take": "Sign in, then take the alarm again.",
    "sign_in_to_send": "Sign in, then send the note again.",
    "note_sending": "Sending",
    "note_shown": "The table's screen shows it. Nobody there has read it yet.",
    "no_notes": "this table takes no notes",
    "blind": "FLOOR BLIND for %(ago)s",
    "blind_what": "Nothing is known of tables that are not heard. Walk the floor.",
    "counts": "%(waits)s wait, %(taken)s taken, %(tables)s in all",
    "shown": "%(shown)s of %(tables)s tables shown",
    "all_pits": "All pits",
    "all_games": "All games",
    "all_states": "All states",
    "no_pit": "no pit",
    "pit": "Pit %(pit)s",
    "round": "round %(round)s",
    "was": "was %(state)s",
    "none": "none",
    "no_archive": "This wall has no archive.",
    "looked": "%(found)s rounds, of %(looked)s looked at",
    "looked_more": "%(found)s rounds, of the newest %(looked)s looked at. Older ones: narrow the time.",
    "checking": "Checking: %(rows)s rows so far",
    "checked": "%(rows)s rows of %(sources)s sources checked: everything fits",
    "checked_wrong": "%(wrong)s of %(sources)s sources do not fit (%(rows)s rows checked)",
    "apart": "%(conflicts)s rows came again with another hash, %(quarantined)s messages could not be read.",
    "not_checked": "Not checked yet",
    "fits": "fits",
    "no_such_table": "The floor has no table of this name.",
}


def words() -> dict[str, str]:
    """The words of every page; those of the table's pages are among them."""
    return {**floor_words(str), **OWN}
