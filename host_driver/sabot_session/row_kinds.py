"""Every kind of row that a record takes: what it says, who may be its actor, and the data it carries.

The kinds of a table's procedure have the names of its actions. `check_row` refuses everything else, so a row
on record has a known kind, the right data, and an actor that can have done it. docs/record.md is written
from this table by ``python -m sabot_session.record_page``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import ValidationError

from sabot_session import row_data as d
from sabot_session.errors import BadRow
from sabot_session.rows import Authentication, Json, Row
from sabot_table.procedure import TableRole

STRONG = (
    Authentication.KEY_AND_PIN,
    Authentication.BADGE_AND_PIN,
    Authentication.CERTIFICATE_AND_PIN,
    Authentication.SIMULATED,
)
SIGNED = (*STRONG, Authentication.PIN, Authentication.SIGNED_IN)
HOW: Mapping[TableRole, tuple[Authentication, ...]] = {
    TableRole.DEALER: (*SIGNED, Authentication.SENSED),
    TableRole.FLOOR: STRONG,
    TableRole.SERVICE: STRONG,
    TableRole.DEVICE: (Authentication.SENSED,),
    TableRole.CONTROLLER: (Authentication.SENSED,),
    TableRole.PROGRAM: (Authentication.PROGRAM,),
}
"""How an actor of each role is known. A player's act is recorded by the dealer who saw it. What the machine
senses at a dealer's hands, such as a button, belongs to the dealer who is signed in."""
PERSONS = (TableRole.DEALER, TableRole.FLOOR, TableRole.SERVICE)
LARGEST = 2**53 - 1  # integers up to this one are the same in every JSON reader (RFC 8785)


class Place(StrEnum):
    """Whether rows of a kind belong to a round."""

    ROUND = "round"  # always
    TABLE = "table"  # never
    ANY = "any"


class By(StrEnum):
    """Who can have done what a row says. Which people may do it, the rule text and the house say."""

    PEOPLE = "people"
    BUTTON = "people or a button"  # one that the machine reports counts as the dealer's touch
    SENSED = "people or the machine"
    DEVICE = "the machine"
    FLOOR = "floor"
    CONTROLLER = "progressive controller"
    PROGRAM = "the program"
    ANYONE = "people, the machine or the program"


ROLES: Mapping[By, tuple[TableRole, ...]] = {
    By.PEOPLE: PERSONS,
    By.BUTTON: PERSONS,
    By.SENSED: (*PERSONS, TableRole.DEVICE),
    By.DEVICE: (TableRole.DEVICE, TableRole.DEALER),
    By.FLOOR: (TableRole.FLOOR,),
    By.CONTROLLER: (TableRole.CONTROLLER,),
    By.PROGRAM: (TableRole.PROGRAM,),
    By.ANYONE: (*PERSONS, TableRole.DEVICE, TableRole.PROGRAM),
}
FROM_THE_MACHINE = (By.BUTTON, By.SENSED, By.DEVICE, By.ANYONE)


@dataclass(frozen=True, slots=True)
class RowKind:
    """One kind of row."""

    name: str
    says: str
    by: By
    place: Place
    data: type[d.RowData]


PEOPLE, BUTTON, SENSED, DEVICE = By.PEOPLE, By.BUTTON, By.SENSED, By.DEVICE
FLOOR, CONTROLLER, PROGRAM, ANYONE = By.FLOOR, By.CONTROLLER, By.PROGRAM, By.ANYONE
ROUND, TABLE, ANY = Place.ROUND, Place.TABLE, Place.ANY

# fmt: off
KINDS = (
    # the table and its people
    RowKind("open_table", "the table opens", PEOPLE, TABLE, d.TableOpened),
    RowKind("close_table", "the table closes; what is still open is listed", PEOPLE, TABLE, d.TableClosed),
    RowKind("idle", "the table is open and no one plays", PEOPLE, TABLE, d.Nothing),
    RowKind("player_arrives", "play begins again at an idle table", PEOPLE, TABLE, d.Nothing),
    RowKind("sign_in", "a dealer begins to deal here", PEOPLE, TABLE, d.Nothing),
    RowKind("sign_out", "a dealer leaves the table", PEOPLE, TABLE, d.SignedOut),
    RowKind("sit", "a player sits down", PEOPLE, ANY, d.AtSeat),
    RowKind("leave", "a player leaves", PEOPLE, ANY, d.AtSeat),
    RowKind("collect_vigorish", "a seat pays the vigorish it owes", PEOPLE, ANY, d.SeatCents),
    RowKind("change_method", "cards are dealt another way from now on", PEOPLE, TABLE, d.MethodChanged),
    RowKind("play_one_pack", "the floor chooses play with one pack", PEOPLE, TABLE, d.Nothing),
    RowKind("call_floor", "the dealer calls the floor", ANYONE, ANY, d.Why),
    RowKind("floor_comes", "the floor is at the table; its call ends", FLOOR, ANY, d.Nothing),
    RowKind("note_received", "a note of the floor came to the screen", PROGRAM, ANY, d.NoteReceived),
    RowKind("note_read", "a person at the table has read a note", PEOPLE, ANY, d.NoteRead),
    RowKind("interruption", "the program was ended and continued", PROGRAM, ANY, d.Interruption),
    RowKind("house_policy", "another house policy is in force, or none", PROGRAM, ANY, d.PolicyInForce),
    # packs
    RowKind("receive_pack", "a pack arrives in a numbered bag or under a seal", PEOPLE, ANY, d.PackReceived),
    RowKind("inspect", "the dealer inspected a pack", PEOPLE, ANY, d.OfPack),
    RowKind("verify", "the floor verified a pack", PEOPLE, ANY, d.OfPack),
    RowKind("spread", "a pack is spread for the first player", PEOPLE, ANY, d.OfPack),
    RowKind("spread_idle", "a pack is spread at an idle table", PEOPLE, ANY, d.OfPack),
    RowKind("wash", "a pack is turned and mixed", PEOPLE, ANY, d.OfPack),
    RowKind("stack", "a washed pack is one stack", PEOPLE, ANY, d.OfPack),
    RowKind("stack_unwashed", "a pack is one stack without a wash", PEOPLE, ANY, d.OfPack),
    RowKind("accept_prepared", "the floor accepts a pack prepared elsewhere", PEOPLE, ANY, d.OfPack),
    RowKind("start_shuffle", "a shuffle begins", SENSED, ANY, d.ShuffleStarted),
    RowKind("finish_shuffle", "a shuffle ended", SENSED, ANY, d.ShuffleFinished),
    RowKind("count_pack", "a pack was counted", SENSED, ANY, d.PackCounted),
    RowKind("verify_shuffle", "the floor verified a shuffle by hand", PEOPLE, ANY, d.OfPack),
    RowKind("deliver", "a shuffled batch came out of the machine", SENSED, ANY, d.OfPack),
    RowKind("decline_cut", "a player does not want to cut", PEOPLE, ANY, d.SeatOfPack),
    RowKind("cut", "a pack is cut", PEOPLE, ANY, d.PackCut),
    RowKind("order_recut", "the floor orders another cut", PEOPLE, ANY, d.OfPack),
    RowKind("place_cover", "the second cover card is placed", PEOPLE, ANY, d.CoverPlaced),
    RowKind("load", "a pack is in the shoe or the dealer's hand", SENSED, ANY, d.OfPack),
    RowKind("laid_in", "the floor says that a pack lies in the machine's shoe", PEOPLE, ANY, d.OfPack),
    RowKind("burn_card", "a shoe's first card is shown", PEOPLE, ANY, d.BurnCardShown),
    RowKind("burn", "a shoe's first card is shown, and cards are burned", PEOPLE, ANY, d.PackBurned),
    RowKind("play", "a pack is dealt from", SENSED, ANY, d.OfPack),
    RowKind("discard", "a pack is in the discard rack", BUTTON, ANY, d.OfPack),
    RowKind("remove", "a pack leaves the table for good", PEOPLE, ANY, d.PackRetired),
    RowKind("register_pack", "the machine is told of a pack at the table", PEOPLE, ANY, d.OfPack),
    RowKind("order_shuffle", "the floor orders another shuffle", PEOPLE, ANY, d.OfPack),
    RowKind("hours_warned", "a pack's hours end soon", PROGRAM, ANY, d.HoursWarned),
    # a round
    RowKind("open_bets", "a round is opened", BUTTON, ROUND, d.RoundOpened),
    RowKind("begin_simulated", "a simulated round without wagers is opened", PEOPLE, ROUND, d.RoundOpened),
    RowKind("place_wager", "a wager is placed", PEOPLE, ROUND, d.Wager),
    RowKind("withdraw_wager", "a wager is withdrawn", PEOPLE, ROUND, d.Wager),
    RowKind("return_bets", "all wagers go back before the deal; the round ends", PEOPLE, ROUND, d.Nothing),
    RowKind("no_more_bets", "bets are closed: seats and wagers as they lie", BUTTON, ROUND, d.Bets),
    RowKind("deal_stack", "the machine dealt a stack", DEVICE, ROUND, d.StackDealt),
    RowKind("deal_card", "a card is dealt", SENSED, ROUND, d.CardDealt),
    RowKind("card_aside", "a card came that goes to no hand now", SENSED, ROUND, d.CardAside),
    RowKind("hands_dealt", "all hands are dealt", SENSED, ROUND, d.Nothing),
    RowKind("four_dealt", "the first four cards are dealt", SENSED, ROUND, d.Nothing),
    RowKind("count_stub", "stacks and stub are counted", SENSED, ROUND, d.StubCounted),
    RowKind("pass_stub", "the stub is not counted in this round", PEOPLE, ROUND, d.Nothing),
    RowKind("recount", "a void round's cards are counted again", SENSED, ROUND, d.StubCounted),
    RowKind("count_wrong", "a wrong count, which the dealer determines", SENSED, ROUND, d.StubCounted),
    RowKind("determine", "the dealer determines what the count means", PEOPLE, ROUND, d.VerdictGiven),
    RowKind("announce", "the dealer announces points", SENSED, ROUND, d.Announced),
    RowKind("third_card", "a third card is turned", SENSED, ROUND, d.ThirdCard),
    RowKind("expose_hand", "one hand is exposed, or told by itself", BUTTON, ROUND, d.Exposed),
    RowKind("reveal", "the hands are exposed", BUTTON, ROUND, d.Exposed),
    RowKind("coup_complete", "both hands of mini baccarat are complete", SENSED, ROUND, d.Exposed),
    RowKind("coup_simulated", "a simulated round is complete", SENSED, ROUND, d.Exposed),
    RowKind("retype", "the floor has cards typed again before settlement", PEOPLE, ROUND, d.Exposed),
    RowKind("forfeit", "a player's wagers are taken: a rule of the hand was broken", PEOPLE, ROUND, d.AtSeat),
    RowKind("abandon", "a player left the table; the wagers are taken", PEOPLE, ROUND, d.AtSeat),
    RowKind("must_hit", "the progressive controller names a winner", CONTROLLER, ROUND, d.MustHit),
    RowKind("cards_read", "the machine's reader told the exposed cards", DEVICE, ROUND, d.Exposed),
    RowKind("settle", "wagers are settled", BUTTON, ROUND, d.Settled),
    RowKind("void", "the round is void", SENSED, ROUND, d.Voided),
    RowKind("collect", "all cards of the round are collected", BUTTON, ROUND, d.Nothing),
    RowKind("empty_device", "cards left in the machine are taken out", PEOPLE, ROUND, d.Nothing),
    # irregularities; where one voids the round, a row `void` follows
    RowKind("face_up_card", "a card came face up", SENSED, ROUND, d.SeenCard),
    RowKind("wrong_number", "a hand has a wrong number of cards", PEOPLE, ROUND, d.Why),
    RowKind("shoe_failed", "people saw that the shoe does not deal", PEOPLE, ROUND, d.Why),
    RowKind("authorise_simulated", "the machine may deal a round without wagers", FLOOR, ROUND, d.Nothing),
    RowKind("drawn_in_error", "a card was drawn in error", PEOPLE, ANY, d.SeenCard),
    RowKind("unauthorised_third", "a third card was drawn against the rules", PEOPLE, ROUND, d.SeenCard),
    RowKind("card_exposed", "another card was exposed", PEOPLE, ANY, d.SeenCard),
    RowKind("too_few_cards", "the shoe has too few cards", SENSED, ROUND, d.Nothing),
    RowKind("cover_card", "the cover card came", SENSED, ANY, d.Nothing),
    RowKind("announce_last_hand", "the dealer announces the shoe's last hand", PEOPLE, ANY, d.Nothing),
    # afterwards
    RowKind("countersign", "the floor countersigns a row", FLOOR, ANY, d.OfRow),
    RowKind("correct", "dealer and floor correct a round; the old version stays", FLOOR, ROUND, d.Correction),
    RowKind("propose_correction", "the dealer says what a round was", PEOPLE, ROUND, d.CorrectionProposed),
    RowKind("decline_correction", "the floor declines a correction", FLOOR, ROUND, d.OfRow),
    RowKind("hold", "the round's cards stay out of the tray", PEOPLE, ROUND, d.Why),
    RowKind("release", "the floor releases held cards", FLOOR, ROUND, d.OfRow),
    RowKind("open_dispute", "somebody says that the screen is wrong", PEOPLE, ANY, d.DisputeOpened),
    RowKind("decide_dispute", "the floor decides a dispute", FLOOR, ANY, d.DisputeDecided),
    # the machine
    RowKind("identify", "the machine at the table, with its versions", SENSED, ANY, d.Identified),
    RowKind("fault_raised", "a half of the machine stopped", DEVICE, ANY, d.FaultRaised),
    RowKind("fault_cleared", "a fault is cleared", SENSED, ANY, d.FaultCleared),
    RowKind("clear_fault", "a person did a fault's steps; the machine checks", PEOPLE, ANY, d.FaultDone),
    RowKind("machine_started", "the machine started again", DEVICE, ANY, d.MachineStarted),
    RowKind("unit_failed", "a half of the machine cannot be used", SENSED, ANY, d.MachineUnit),
    RowKind("mark_out_of_order", "a half is covered, or has a sign", PEOPLE, ANY, d.MarkedOutOfOrder),
    RowKind("set_game", "the machine is set to the table's game", PEOPLE, ANY, d.Nothing),
    RowKind("empty_machine", "every card in the machine comes out", PEOPLE, ANY, d.Nothing),
    RowKind("purge", "the deal roller turns once with an empty path", PEOPLE, ANY, d.Nothing),
    RowKind("path_inspected", "the floor looked: no card lies in the shoe's path", PEOPLE, ANY, d.Nothing),
    RowKind("clear_jam", "a jam was cleared without a tool", PEOPLE, ANY, d.MachineUnit),
    RowKind("clear_jam_with_tool", "service cleared a jam with a tool", PEOPLE, ANY, d.MachineUnit),
    RowKind("repaired", "a half may be used again", PEOPLE, TABLE, d.MachineUnit),
    RowKind("return_to_service", "service has acted; the machine tests itself", PEOPLE, ANY, d.Nothing),
    RowKind("install_machine", "service put another machine here", PEOPLE, TABLE, d.MachineInstalled),
    RowKind("install_pc", "service put another table PC here", PEOPLE, TABLE, d.PcInstalled),
    RowKind("swap_machine", "floor and service put another machine here", FLOOR, TABLE, d.MachineSwapped),
    RowKind("swap_pc", "floor and service put another table PC here", FLOOR, TABLE, d.PcSwapped),
    RowKind("stop_machine", "somebody stopped both halves while no round was open", PEOPLE, ANY, d.Nothing),
    RowKind("begin_service", "service begins: nothing inside is proved", PEOPLE, ANY, d.Nothing),
    RowKind("end_service", "service ends: the machine tests itself", PEOPLE, ANY, d.Nothing),
    RowKind("self_test", "the machine is asked to test itself", PEOPLE, ANY, d.Nothing),
    RowKind("jog", "service may move one part, step by step", PEOPLE, ANY, d.PartJogged),
    RowKind("calibrate", "service sets a calibration value", PEOPLE, ANY, d.ValueCalibrated),
    RowKind("shuffle_committed", "the machine committed to a shuffle", PROGRAM, ANY, d.ShuffleCommitted),
    RowKind("shuffle_revealed", "a shuffle was revealed and checked", PROGRAM, ANY, d.ShuffleRevealed),
    RowKind("unexplained", "a report does not fit the table", ANYONE, ANY, d.Unexplained),
    RowKind("command_sent", "a command went to the machine (not written now)", PROGRAM, ANY, d.CommandSent),
    RowKind("command_answered", "the machine did not execute a request", PROGRAM, ANY, d.CommandAnswered),
    # the record itself
    RowKind("record_restored", "the file was moved, or is a restored copy", PROGRAM, TABLE, d.RecordRestored),
    RowKind("record_migrated", "an older record was taken over", PROGRAM, TABLE, d.RecordMigrated),
    RowKind("logged_before", "a line of an older record", PROGRAM, TABLE, d.LoggedBefore),
)
# fmt: on
BY_NAME: Mapping[str, RowKind] = {each.name: each for each in KINDS}


def check_row(row: Row) -> Row:
    """The row with its data complete (defaults filled in); `BadRow` if the record does not take it."""
    kind = BY_NAME.get(row.kind)
    if kind is None:
        raise BadRow(f"row '{row.kind}': there is no such kind of row")
    _check_actor(kind, row)
    if kind.place is Place.ROUND and row.round_id < 1:
        raise BadRow(f"row '{row.kind}': it belongs to a round and names none")
    if kind.place is Place.TABLE and row.round_id != 0:
        raise BadRow(f"row '{row.kind}': it belongs to no round and names round {row.round_id}")
    if not 0 <= row.at_s <= LARGEST or not 0 <= row.round_id <= LARGEST:
        raise BadRow(f"row '{row.kind}': time {row.at_s} or round {row.round_id} is out of range")
    return replace(row, data=checked_data(kind, row.data))


def checked_data(kind: RowKind, data: Mapping[str, Json]) -> dict[str, Json]:
    """The data of a row of this kind, complete; `BadRow` if it does not fit."""
    return _fitting(kind, data).to_json()


def data_of(row: Row) -> d.RowData:
    """The data of a row on record as its model; `BadRow` if it does not fit."""
    kind = BY_NAME.get(row.kind)
    if kind is None:
        raise BadRow(f"row '{row.kind}': there is no such kind of row")
    return _fitting(kind, row.data)


def _fitting(kind: RowKind, data: Mapping[str, Json]) -> d.RowData:
    try:
        return kind.data.model_validate_json(json.dumps(data))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, it['loc']))}: {it['msg']}" for it in error.errors())
        raise BadRow(f"row '{kind.name}': its data does not fit: {wrong}") from error
    except (TypeError, ValueError) as error:
        raise BadRow(f"row '{kind.name}': its data does not fit: {error}") from error


def _check_actor(kind: RowKind, row: Row) -> None:
    actor = row.actor
    if actor.role not in ROLES[kind.by]:
        raise BadRow(f"row '{kind.name}': its actor is {actor.role}; it is done by {kind.by}")
    if actor.how not in HOW[actor.role]:
        raise BadRow(f"row '{kind.name}': {actor.role} cannot be known by '{actor.how}'")
    is_person = actor.role in PERSONS
    if is_person != bool(actor.person):
        raise BadRow(f"row '{kind.name}': {actor.role} {'is nobody' if is_person else 'names a person'}")
    sensed = actor.how is Authentication.SENSED
    if is_person and sensed and (kind.by not in FROM_THE_MACHINE or row.follows is None):
        raise BadRow(f"row '{kind.name}': no event of the machine shows that the {actor.role} did this")
    if kind.by is By.DEVICE and not sensed:
        raise BadRow(f"row '{kind.name}': only the machine's sensors tell this")
