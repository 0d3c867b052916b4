"""Every message, field, enum, error, fault and state of the wire, declared once.

Plain tuples of numbers and strings: a board that freezes this module keeps it in flash and
spends no memory on it. One-line meanings and units are in ``meanings``, which stays off the board.

A message is ``(id, name, kind, answer, roles, fields)``:

``kind``
    ``clear``    a datagram outside a session
    ``query``    a request that reads, or changes only the session; may be carried out again
    ``command``  a request that is executed exactly once, however often it is sent
    ``answer``   what a request gets when it is not refused
    ``event``    what the device reports by itself, numbered and kept until acknowledged
``answer``
    the name of the message that answers it
``roles``
    who may ask: ``any`` (observers too) or names of ``Role``

A field is ``(name, type, ...)``:

``u8 u16 u32 i8 i16 i32``  with the lowest and the highest value allowed
``enum`` / ``flags``       with the name of the enum (one byte) or flag set (two bytes)
``bytes``                  with its exact length
``blob`` / ``text``        with the least and the greatest length in bytes (UTF-8 for text)
``array``                  with the item's type, least and greatest count, lowest and highest value

Ids 0x01-0x3F are frozen for ever: their fields never change, a reader ignores bytes after the
ones it knows, and they work between any two versions. That is why they hold no enums.
"""


def const(value: int) -> int:
    """Return the value. MicroPython's compiler replaces each use of such a name by its number.

    So the tables below remain constants, and a board that freezes this module keeps them in flash.
    """
    return value


MAJOR = 1
MINOR = 0
FROZEN_BELOW = 0x40
MAX_WINDOW = const(16)  # messages in flight, in each direction
MAX_REVOKED = const(250)  # certificates in the list of revocations that a device keeps

# Bits of IdentityFlag.
PROVISIONED_FLAG = const(0x0001)
SIMULATOR_FLAG = const(0x0002)
TEST_RNG_FLAG = const(0x0004)
KEYS_DAMAGED_FLAG = const(0x0008)
# Bits of StatusFlag.
OWNED_FLAG = const(0x0001)
CLOCK_KNOWN_FLAG = const(0x0002)
ROUND_OPEN_FLAG = const(0x0004)
FAULT_LATCHED_FLAG = const(0x0008)

ENUMS = (
    ("Role", (
        ("observer", 0), ("table", 1), ("dealer", 2), ("floor", 3), ("service", 4), ("lab", 5),
    )),
    ("AttachMode", (("observer", 0), ("owner", 1))),
    ("ClockQuality", (("unknown", 0), ("set", 1), ("stale", 2))),
    ("KeySlot", (("device", 0), ("observer", 1))),
    ("KeyState", (("unprovisioned", 0), ("provisioned", 1), ("keys_damaged", 2))),
    ("GapReason", (("overflow", 1), ("reboot", 2), ("memory_lost", 3))),
    ("BootReason", (
        ("power", 1), ("watchdog", 2), ("requested", 3), ("brown_out", 4), ("unknown", 5),
    )),
    ("ChainReason", (("provisioned", 1), ("memory_lost", 2), ("first_boot", 3))),
    ("Component", (("controller", 1), ("card_recognition", 2), ("rng", 3))),
    ("Back", (("red", 1), ("blue", 2))),
    ("ShufflerState", (
        ("starting", 0), ("idle", 1), ("feeding", 2), ("storing", 3), ("stored", 4),
        ("jammed", 5), ("door_open", 6), ("service", 7), ("out_of_order", 8), ("holding", 9),
        ("unproved", 10),
    )),
    ("ShoeState", (
        ("starting", 0), ("empty", 1), ("loading", 2), ("ready", 3), ("round_open", 4),
        ("dispensing", 5), ("stack_waiting", 6), ("ejecting", 7), ("unproved", 8), ("jammed", 9),
        ("door_open", 10), ("service", 11), ("out_of_order", 12), ("stub_waiting", 13),
        ("blocked", 14),
    )),
    ("Half", (("shuffler", 1), ("shoe", 2))),
    ("Sensor", (
        ("entry", 0), ("insertion", 1), ("exit", 2), ("tray", 3), ("chamber", 4), ("store", 5),
        ("shoe", 6), ("exit_tray", 7), ("elevator", 8), ("elevator_home", 9), ("gripper", 10),
        ("shelf", 11), ("pusher_home", 12), ("pusher_end", 13), ("height", 14), ("shuffler_door", 15),
        ("shoe_door", 16), ("left_button", 17), ("right_button", 18), ("feed_stall", 19),
        ("insert_stall", 20), ("deal_stall", 21), ("hot", 22), ("supply_low", 23),
    )),
    ("Place", (
        ("tray", 1), ("feed", 2), ("entry", 3), ("insertion", 4), ("chamber", 5), ("store", 6),
        ("pusher", 7), ("shoe", 8), ("deal", 9), ("exit", 10), ("exit_tray", 11),
        ("controller", 12),
    )),
    ("Verdict", (
        ("correct", 1), ("misdealt", 2), ("card_missing", 3), ("card_extra", 4), ("unproved", 5),
    )),
    ("Method", (("automated_shoe", 0), ("manual_shoe", 1), ("hand", 2), ("card_by_card", 3))),
    ("Part", (
        ("feed", 1), ("insert", 2), ("deal", 3), ("elevator", 4), ("gripper", 5), ("shelf", 6),
        ("pusher", 7),
    )),
    ("Calibration", (("blade_um", 1), ("card_um", 2))),
    ("RemoveReason", (
        ("hours", 1), ("wrong_count", 2), ("damaged", 3), ("floor_order", 4), ("table_closed", 5),
    )),
    ("VoidReason", (
        ("floor_order", 1), ("face_up_card", 2), ("wrong_number", 3), ("shoe_failed", 4),
        ("stack_disturbed", 5), ("power_cut", 6), ("too_few_cards", 7), ("stopped", 8),
    )),
    ("Fault", (
        ("misfeed", 1), ("double_feed", 2), ("card_stuck", 3), ("insertion_failed", 4),
        ("height_mismatch", 5), ("grip_mismatch", 6), ("axis_lost", 7), ("switch_missed", 8),
        ("motor_stall", 9), ("sensor_disagrees", 10), ("count_wrong", 11), ("wrong_deck", 12),
        ("foreign_card", 13), ("face_up_card", 14), ("door_opened", 15), ("stack_disturbed", 16),
        ("over_temperature", 17), ("supply_low", 18), ("memory_damaged", 19), ("rng_failed", 20),
        ("clock_unknown", 21), ("watchdog_reset", 22), ("power_lost", 23), ("stopped", 24),
    )),
    ("RngSource", (("noise", 1), ("generator", 2))),
    ("CertificateReason", (
        ("no_house", 1), ("wrong_site", 2), ("forged", 3), ("time_unknown", 4), ("expired", 5),
        ("revoked", 6), ("no_revocations", 7), ("not_shown", 8), ("role_missing", 9), ("wrong_proof", 10),
        ("shown_before", 11), ("old_list", 12), ("bad_list", 13),
    )),
    ("DropReason", (("replaced", 1), ("stopped", 2), ("deck_removed", 3))),
    ("Forbidden", (
        ("two_decks_already", 1), ("same_back", 2), ("unknown_back", 3), ("deck_used_before", 4),
        ("no_such_deck", 5), ("not_its_turn", 6), ("other_deck_missing", 7), ("time_unknown", 8),
        ("past_its_hours", 9), ("bets_open", 10), ("tray_empty", 11), ("in_use", 12),
        ("another_deck", 13), ("not_cleared", 14), ("no_such_fault", 15), ("service_only", 16),
        ("stacks_missing", 17), ("last_hand_dealt", 18), ("other_method", 19), ("too_hot", 20),
        ("not_revealed", 21), ("not_delivered", 22), ("out_of_order", 23), ("too_many", 24),
        ("already_burnt", 25), ("hands_fixed", 26), ("not_opened_yet", 27), ("no_such_shuffle", 30),
    )),
)

FLAGS = (
    ("IdentityFlag", (
        ("provisioned", PROVISIONED_FLAG), ("simulator", SIMULATOR_FLAG), ("test_rng", TEST_RNG_FLAG),
        ("keys_damaged", KEYS_DAMAGED_FLAG),
    )),
    ("StatusFlag", (
        ("owned", OWNED_FLAG), ("clock_known", CLOCK_KNOWN_FLAG), ("round_open", ROUND_OPEN_FLAG),
        ("fault_latched", FAULT_LATCHED_FLAG),
    )),
    ("ButtonFlag", (("left", 0x0001), ("right", 0x0002))),
)

MESSAGES = (
    # Outside a session ------------------------------------------------------------------------
    (0x01, "identify", "clear", "identity", "any", ()),
    (0x02, "identity", "clear", "", "", (
        ("major", "u8", 0, 255),
        ("minor", "u8", 0, 255),
        ("schema", "bytes", 8),
        ("flags", "u16", 0, 0xFFFF),
        ("boot_id", "u32", 0, 0xFFFFFFFF),
        ("memory_id", "bytes", 4),
        ("window", "u8", 1, MAX_WINDOW),
        ("max_payload", "u8", 192, 249),
        ("serial", "bytes", 8),
        ("model", "text", 1, 24),
        ("version", "text", 1, 24),
    )),
    (0x03, "provision", "clear", "provisioned", "any", (
        ("nonce", "bytes", 16),
        ("device_key", "bytes", 32),
        ("entropy", "bytes", 32),
    )),
    (0x04, "provisioned", "clear", "", "", (("proof", "bytes", 16),)),
    (0x05, "hello", "clear", "challenge", "any", (
        ("nonce", "bytes", 16),
        ("host_id", "bytes", 8),
        ("slot", "u8", 0, 255),
        ("run", "u32", 0, 0xFFFFFFFF),
        ("major", "u8", 0, 255),
        ("minor", "u8", 0, 255),
        ("schema", "bytes", 8),
        ("window", "u8", 1, MAX_WINDOW),
        ("max_payload", "u8", 192, 249),
    )),
    (0x06, "challenge", "clear", "", "", (
        ("proof", "bytes", 16),
        ("host_nonce", "bytes", 16),
        ("nonce", "bytes", 16),
        ("handshake", "u32", 0, 0xFFFFFFFF),
        ("boot_id", "u32", 0, 0xFFFFFFFF),
        ("memory_id", "bytes", 4),
        ("serial", "bytes", 8),
        ("major", "u8", 0, 255),
        ("minor", "u8", 0, 255),
        ("schema", "bytes", 8),
        ("window", "u8", 1, MAX_WINDOW),
        ("max_payload", "u8", 192, 249),
        ("flags", "u16", 0, 0xFFFF),
    )),
    (0x07, "prove", "clear", "", "", (
        ("session", "u16", 0, 0xFFFF),
        ("proof", "bytes", 16),
    )),
    (0x08, "refused", "clear", "", "", (
        ("nonce", "bytes", 16),
        ("error", "u8", 1, 255),
    )),
    (0x09, "no_session", "clear", "", "", (
        ("boot_id", "u32", 0, 0xFFFFFFFF),
        ("session", "u16", 0, 0xFFFF),
    )),
    (0x25, "reset_statement", "clear", "reset_is", "any", (
        ("nonce", "bytes", 16),
        ("proof", "blob", 0, 64),
    )),
    (0x2B, "reset_is", "clear", "", "", (
        ("nonce", "bytes", 16),
        ("bound", "u8", 0, 1),
        ("house", "bytes", 32),
        ("count", "u32", 0, 0xFFFFFFFF),
        ("accepted", "u8", 0, 1),
    )),
    # In a session, frozen ---------------------------------------------------------------------
    (0x10, "status", "query", "status_report", "any", ()),
    (0x11, "status_report", "answer", "", "", (
        ("uptime_s", "u32", 0, 0xFFFFFFFF),
        ("utc_s", "u32", 0, 0xFFFFFFFF),
        ("clock", "u8", 0, 255),
        ("shuffler", "u8", 0, 255),
        ("shoe", "u8", 0, 255),
        ("fault", "u8", 0, 255),
        ("flags", "u16", 0, 0xFFFF),
        ("round_id", "u32", 0, 0xFFFFFFFF),
        ("stack", "u8", 0, 255),
    )),
    (0x12, "attach", "query", "attached", "any", (
        ("mode", "u8", 0, 1),
        ("from_boot", "u32", 0, 0xFFFFFFFF),
        ("from_n", "u32", 0, 0xFFFFFFFF),
    )),
    (0x13, "attached", "answer", "", "", (
        ("mode", "u8", 0, 1),
        ("known", "u8", 0, 1),
        ("newest_command", "u32", 0, 0xFFFFFFFF),
        ("owner", "bytes", 8),
    )),
    (0x14, "detach", "query", "done", "any", ()),
    (0x15, "elevate", "query", "elevated", "any", (
        ("scheme", "u8", 0, 255),
        ("slot", "u8", 0, 255),
        ("request", "u8", 0, 255),
        ("request_number", "u32", 0, 0xFFFFFFFF),
        ("body_sha256", "bytes", 32),
        ("proof", "blob", 16, 64),
    )),
    (0x16, "elevated", "answer", "", "", (
        ("role", "u8", 0, 255),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0x17, "component", "query", "component_is", "any", (("component", "u8", 1, 255),)),
    (0x18, "component_is", "answer", "", "", (
        ("component", "u8", 1, 255),
        ("sha256", "bytes", 32),
        ("version", "text", 1, 24),
    )),
    (0x1D, "set_key", "command", "done", "table service", (
        ("slot", "u8", 0, 255),
        ("role", "u8", 0, 255),
        ("person", "u32", 0, 0xFFFFFFFF),
        ("wrapped", "bytes", 32),
    )),
    (0x1E, "remove_key", "command", "done", "service", (("slot", "u8", 0, 255),)),
    (0x20, "evict_owner", "query", "done", "floor", (("owner", "bytes", 8),)),
    (0x21, "chain_key", "query", "chain_key_is", "table", ()),
    (0x27, "chain_key_is", "answer", "", "", (
        ("boot_id", "u32", 1, 0xFFFFFFFF),
        ("n", "u32", 1, 0xFFFFFFFF),
        ("hash", "bytes", 32),
        ("wrapped", "bytes", 32),
    )),
    (0x22, "house_key", "query", "done", "table service", (
        ("key", "bytes", 32),
        ("site", "text", 1, 24),
        ("number", "u32", 0, 0xFFFFFFFF),
        ("old_until_s", "u32", 0, 0xFFFFFFFF),
        ("proof", "blob", 0, 64),
    )),
    (0x23, "certificate", "query", "done", "any", (
        ("key", "bytes", 32),
        ("not_after_s", "u32", 0, 0xFFFFFFFF),
        ("person", "text", 1, 32),
        ("roles", "u8", 0, 255),
        ("site", "text", 1, 24),
        ("signature", "bytes", 64),
    )),
    (0x24, "revocations", "query", "revocations_are", "table dealer floor service lab", (
        ("number", "u32", 0, 0xFFFFFFFF),
        ("count", "u16", 0, MAX_REVOKED),
        ("first", "u16", 0, MAX_REVOKED),
        ("ids", "blob", 0, 144),
        ("signature", "blob", 0, 64),
    )),
    (0x2C, "revocations_are", "answer", "", "", (
        ("known", "u8", 0, 1),
        ("number", "u32", 0, 0xFFFFFFFF),
        ("taken", "u16", 0, MAX_REVOKED),
    )),
    (0x26, "evidence", "query", "evidence_is", "table dealer floor service lab", (
        ("from_n", "u32", 0, 0xFFFFFFFF),
    )),
    (0x28, "evidence_is", "answer", "", "", (
        ("n", "u32", 0, 0xFFFFFFFF),
        ("newest", "u32", 0, 0xFFFFFFFF),
        ("row", "blob", 0, 150),
    )),
    (0x29, "checkpoint", "query", "checkpoint_is", "table dealer floor service lab", ()),
    (0x2A, "checkpoint_is", "answer", "", "", (("event", "blob", 0, 84),)),
    (0x3F, "done", "answer", "", "", ()),
    # The controller ---------------------------------------------------------------------------
    (0x40, "set_clock", "command", "done", "table", (
        ("utc_s", "u32", 1767225600, 0xFFFFFFFF),
        ("utc_ms", "u16", 0, 999),
    )),
    (0x42, "locate", "command", "done", "table floor service", (("seconds", "u8", 1, 60),)),
    (0x43, "counters", "query", "counters_are", "any", ()),
    (0x44, "counters_are", "answer", "", "", (
        ("values", "array", "u32", 1, 32, 0, 0xFFFFFFFF),
    )),
    (0x45, "trace", "query", "trace_is", "table dealer floor service lab", (
        ("skip", "u8", 0, 99),
    )),
    (0x46, "trace_is", "answer", "", "", (
        ("kept", "u8", 0, 100),
        ("headers", "blob", 0, 160),
    )),
    (0x47, "set_game", "command", "done", "floor", (
        ("name", "text", 1, 24),
        ("method", "enum", "Method"),
        ("decks", "u8", 1, 8),
        ("stack_cards", "u8", 1, 13),
        ("deck_hours", "u16", 1, 0xFFFF),
    )),
    (0x48, "game", "query", "game_is", "any", ()),
    (0x49, "game_is", "answer", "", "", (
        ("name", "text", 0, 24),
        ("method", "enum", "Method"),
        ("decks", "u8", 1, 8),
        ("stack_cards", "u8", 1, 13),
        ("deck_hours", "u16", 1, 0xFFFF),
        ("one_deck", "u8", 0, 1),
    )),
    (0x4A, "log", "query", "log_is", "table dealer floor service lab", (
        ("from_n", "u32", 0, 0xFFFFFFFF),
    )),
    (0x4B, "log_is", "answer", "", "", (
        ("n", "u32", 0, 0xFFFFFFFF),
        ("newest", "u32", 0, 0xFFFFFFFF),
        ("row", "blob", 0, 150),
    )),
    (0x4C, "key_slots", "query", "key_slots_are", "any", ()),
    (0x4D, "key_slots_are", "answer", "", "", (
        ("open", "u8", 0, 1),
        ("slots", "array", "u8", 0, 14, 0, 13),
        ("roles", "array", "u8", 0, 14, 0, 255),
        ("persons", "array", "u32", 0, 14, 0, 0xFFFFFFFF),
    )),
    (0x4E, "call_floor", "command", "done", "table", (("on", "u8", 0, 1),)),
    # Decks, rounds and stacks -----------------------------------------------------------------
    (0x50, "register_deck", "command", "done", "floor", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("back", "enum", "Back"),
        ("opened_utc_s", "u32", 1767225600, 0xFFFFFFFF),
    )),
    (0x51, "remove_deck", "command", "done", "floor", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("reason", "enum", "RemoveReason"),
    )),
    (0x52, "shuffle", "command", "shuffle_begun", "table", (("deck_id", "u32", 1, 0xFFFFFFFF),)),
    (0x53, "shuffle_begun", "answer", "", "", (("shuffle_id", "u32", 1, 0xFFFFFFFF),)),
    (0x54, "open_round", "command", "done", "table", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("deck_id", "u32", 1, 0xFFFFFFFF),
    )),
    (0x55, "dispense_stack", "command", "done", "table", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("stack", "u8", 1, 17),
    )),
    (0x56, "end_round", "command", "done", "table", (("round_id", "u32", 1, 0xFFFFFFFF),)),
    (0x57, "void_round", "command", "done", "table floor", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("reason", "enum", "VoidReason"),
    )),
    (0x58, "clear_fault", "command", "done", "table floor service", (("fault", "enum", "Fault"),)),
    (0x59, "close_bets", "command", "done", "table", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("hands", "u8", 2, 17),
    )),
    (0x5A, "play_one_deck", "command", "done", "floor", (("on", "u8", 0, 1),)),
    (0x5B, "deliver_deck", "command", "done", "table", (("deck_id", "u32", 1, 0xFFFFFFFF),)),
    (0x5C, "load_shoe", "command", "done", "floor", (("deck_id", "u32", 1, 0xFFFFFFFF),)),
    (0x5D, "burn_cards", "command", "done", "table", (("cards", "u8", 1, 10),)),
    (0x5E, "draw_cards", "command", "done", "table", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("draw", "u8", 1, 17),
        ("cards", "u8", 1, 13),
    )),
    (0x5F, "end_shoe", "command", "done", "table", (("deck_id", "u32", 1, 0xFFFFFFFF),)),
    (0x60, "simulate_round", "command", "done", "floor", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("deck_id", "u32", 1, 0xFFFFFFFF),
    )),
    (0x61, "reveal_round", "command", "done", "table", (("round_id", "u32", 1, 0xFFFFFFFF),)),
    (0x62, "faces", "query", "faces_are", "table dealer floor service lab", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("stack", "u8", 1, 17),
    )),
    (0x63, "faces_are", "answer", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("stack", "u8", 1, 17),
        ("faces", "array", "u8", 0, 13, 0, 255),
    )),
    (0x64, "decks", "query", "decks_are", "any", ()),
    (0x65, "decks_are", "answer", "", "", (
        ("ids", "array", "u32", 0, 2, 1, 0xFFFFFFFF),
        ("backs", "array", "u8", 0, 2, 0, 255),
        ("left_s", "array", "i32", 0, 2, -0x80000000, 0x7FFFFFFF),
        ("last_played", "u32", 0, 0xFFFFFFFF),
    )),
    (0x66, "whereabouts", "query", "whereabouts_are", "any", (("deck_id", "u32", 1, 0xFFFFFFFF),)),
    (0x67, "whereabouts_are", "answer", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("expected", "u16", 1, 418),
        ("proved", "u8", 0, 1),
        ("cards", "array", "u16", 7, 7, 0, 0xFFFF),
    )),
    (0x68, "last_round", "query", "last_round_is", "any", ()),
    (0x69, "last_round_is", "answer", "", "", (
        ("round_id", "u32", 0, 0xFFFFFFFF),
        ("deck_id", "u32", 0, 0xFFFFFFFF),
        ("verdict", "u8", 0, 255),
        ("void", "u8", 0, 255),
        ("count", "u16", 0, 0xFFFF),
    )),
    (0x6A, "stop", "command", "done", "table", ()),
    (0x6B, "purge", "command", "done", "floor", ()),
    (0x6C, "path_inspected", "command", "done", "floor", ()),
    # Out of order and service -----------------------------------------------------------------
    (0x70, "mark_out_of_order", "command", "done", "floor service", ()),
    (0x71, "return_to_service", "command", "done", "service", ()),
    (0x72, "service_mode", "command", "done", "service", (("on", "u8", 0, 1),)),
    (0x73, "self_test", "command", "done", "floor service", ()),
    (0x74, "jog", "command", "done", "table service", (
        ("part", "enum", "Part"),
        ("amount", "i32", -200000, 200000),
    )),
    (0x75, "calibrate", "command", "done", "service", (
        ("what", "enum", "Calibration"),
        ("value", "i32", -10000, 10000),
    )),
    (0x76, "calibration", "query", "calibration_is", "any", (("what", "enum", "Calibration"),)),
    (0x77, "calibration_is", "answer", "", "", (
        ("what", "enum", "Calibration"),
        ("value", "i32", -10000, 10000),
        ("set_utc_s", "u32", 0, 0xFFFFFFFF),
    )),
    (0x78, "empty_machine", "command", "done", "floor service", ()),
    (0x79, "sensors", "query", "sensors_are", "any", ()),
    (0x7A, "sensors_are", "answer", "", "", (
        ("levels", "u32", 0, 0xFFFFFFFF),
        ("height_um", "u32", 0, 200000),
        ("rollers_um", "array", "i32", 3, 3, -0x80000000, 0x7FFFFFFF),
    )),
    (0x7B, "wear", "query", "wear_is", "any", ()),
    (0x7C, "wear_is", "answer", "", "", (
        ("values", "array", "u32", 1, 40, 0, 0xFFFFFFFF),
    )),
    (0x7D, "start_loader", "command", "done", "service", ()),
    # Events -----------------------------------------------------------------------------------
    (0x80, "booted", "event", "", "", (("reason", "enum", "BootReason"),)),
    (0x81, "clock_changed", "event", "", "", (
        ("step_s", "i32", -0x80000000, 0x7FFFFFFF),
        ("quality", "enum", "ClockQuality"),
    )),
    (0x82, "owner_changed", "event", "", "", (("owner", "bytes", 8),)),
    (0x83, "elevation_used", "event", "", "", (
        ("host_id", "bytes", 8),
        ("slot", "u8", 2, 13),
        ("role", "enum", "Role"),
        ("person", "u32", 0, 0xFFFFFFFF),
        ("request", "u8", 0, 255),
        ("request_number", "u32", 0, 0xFFFFFFFF),
    )),
    (0x84, "key_changed", "event", "", "", (
        ("slot", "u8", 0, 13),
        ("role", "enum", "Role"),
        ("person", "u32", 0, 0xFFFFFFFF),
        ("host_id", "bytes", 8),
        ("by", "u32", 0, 0xFFFFFFFF),
    )),
    (0x85, "located", "event", "", "", (("seconds", "u8", 1, 60),)),
    (0x86, "buttons", "event", "", "", (("pressed", "flags", "ButtonFlag"),)),
    (0x87, "host_started", "event", "", "", (
        ("host_id", "bytes", 8),
        ("run", "u32", 0, 0xFFFFFFFF),
    )),
    (0x8A, "owner_evicted", "event", "", "", (
        ("owner", "bytes", 8),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0x8B, "proofs_refused", "event", "", "", (
        ("slot", "u8", 0, 255),
        ("count", "u32", 1, 0xFFFFFFFF),
        ("total", "u32", 1, 0xFFFFFFFF),
    )),
    (0x8E, "key_removed", "event", "", "", (
        ("slot", "u8", 0, 13),
        ("role", "enum", "Role"),
        ("person", "u32", 0, 0xFFFFFFFF),
        ("host_id", "bytes", 8),
        ("by", "u32", 0, 0xFFFFFFFF),
    )),
    (0x88, "floor_called", "event", "", "", (
        ("on", "u8", 0, 1),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0x89, "game_changed", "event", "", "", (
        ("name", "text", 0, 24),
        ("method", "enum", "Method"),
        ("decks", "u8", 1, 8),
        ("stack_cards", "u8", 1, 13),
        ("deck_hours", "u16", 1, 0xFFFF),
        ("one_deck", "u8", 0, 1),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0x8C, "deck_registered", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("back", "enum", "Back"),
        ("opened_utc_s", "u32", 1767225600, 0xFFFFFFFF),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0x8D, "calibrated", "event", "", "", (
        ("what", "enum", "Calibration"),
        ("value", "i32", -10000, 10000),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0x8F, "faces_revealed", "event", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("stack", "u8", 1, 17),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0x90, "shuffler_changed", "event", "", "", (
        ("state", "enum", "ShufflerState"),
        ("deck_id", "u32", 0, 0xFFFFFFFF),
    )),
    (0x91, "shoe_changed", "event", "", "", (
        ("state", "enum", "ShoeState"),
        ("deck_id", "u32", 0, 0xFFFFFFFF),
        ("round_id", "u32", 0, 0xFFFFFFFF),
    )),
    (0x92, "deck_counted", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("count", "u16", 0, 418),
        ("expected", "u16", 1, 418),
    )),
    (0x93, "stack_dispensed", "event", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("stack", "u8", 1, 17),
        ("cards", "u8", 0, 52),
    )),
    (0x94, "stack_taken", "event", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("stack", "u8", 1, 17),
    )),
    (0x95, "round_ended", "event", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("verdict", "enum", "Verdict"),
        ("stub", "u8", 0, 52),
        ("count", "u8", 0, 255),
    )),
    (0x96, "round_voided", "event", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("reason", "enum", "VoidReason"),
    )),
    (0x97, "fault_raised", "event", "", "", (
        ("fault", "enum", "Fault"),
        ("place", "enum", "Place"),
        ("cards", "u16", 0, 418),
        ("steps", "text", 0, 120),
    )),
    (0x98, "fault_cleared", "event", "", "", (("fault", "enum", "Fault"),)),
    (0x99, "deck_hours", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("left_s", "u32", 0, 0xFFFFFFFF),
    )),
    (0x9A, "deck_removed", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("reason", "enum", "RemoveReason"),
    )),
    (0x9B, "bets_closed", "event", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("hands", "u8", 2, 17),
    )),
    (0x9C, "deck_delivered", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("count", "u16", 0, 418),
        ("expected", "u16", 1, 418),
    )),
    (0x9D, "cards_drawn", "event", "", "", (
        ("round_id", "u32", 0, 0xFFFFFFFF),
        ("draw", "u8", 0, 255),
        ("cards", "u8", 0, 255),
    )),
    (0x9E, "cards_taken", "event", "", "", (
        ("round_id", "u32", 0, 0xFFFFFFFF),
        ("draw", "u8", 0, 255),
    )),
    (0x9F, "cover_card_seen", "event", "", "", (("round_id", "u32", 0, 0xFFFFFFFF),)),
    (0xA0, "card_exposed", "event", "", "", (("round_id", "u32", 0, 0xFFFFFFFF),)),
    (0xA1, "last_hand", "event", "", "", (("round_id", "u32", 1, 0xFFFFFFFF),)),
    (0xA2, "shoe_ended", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("count", "u16", 0, 0xFFFF),
        ("expected", "u16", 1, 418),
    )),
    (0xA3, "out_of_order_changed", "event", "", "", (("on", "u8", 0, 1),)),
    (0xA4, "self_tested", "event", "", "", (("half", "enum", "Half"), ("passed", "u8", 0, 1))),
    (0xA5, "emptied", "event", "", "", (("cards", "u16", 0, 0xFFFF),)),
    (0xA6, "retried", "event", "", "", (("fault", "enum", "Fault"), ("place", "enum", "Place"))),
    (0xA7, "stopped", "event", "", "", (
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0xA8, "purged", "event", "", "", (
        ("cards", "u8", 0, 255),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0xA9, "path_inspected_by", "event", "", "", (
        ("deck_id", "u32", 0, 0xFFFFFFFF),
        ("missing", "u16", 0, 418),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0xAA, "presence_shown", "event", "", "", (
        ("was", "enum", "KeyState"),
        ("now", "enum", "KeyState"),
    )),
    (0xAB, "chain_checkpoint", "event", "", "", (
        ("boot_id", "u32", 1, 0xFFFFFFFF),
        ("n", "u32", 1, 0xFFFFFFFF),
        ("index", "u32", 0, 0xFFFFFFFF),
        ("hash", "bytes", 32),
        ("tag", "bytes", 16),
    )),
    (0xAC, "hands_changed", "event", "", "", (
        ("round_id", "u32", 1, 0xFFFFFFFF),
        ("before", "u8", 2, 17),
        ("hands", "u8", 2, 17),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0xAD, "provisioning_ended", "event", "", "", ()),
    (0xAE, "roller_times", "event", "", "", (
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("counts", "array", "u16", 3, 3, 0, 0xFFFF),
        ("sums", "array", "u32", 3, 3, 0, 0xFFFFFFFF),
        ("squares", "array", "u32", 3, 3, 0, 0xFFFFFFFF),
    )),
    (0xAF, "events_lost", "event", "", "", (
        ("reason", "enum", "GapReason"),
        ("from_boot", "u32", 0, 0xFFFFFFFF),
        ("from_n", "u32", 0, 0xFFFFFFFF),
        ("to_boot", "u32", 1, 0xFFFFFFFF),
        ("to_n", "u32", 1, 0xFFFFFFFF),
        ("count", "u32", 1, 0xFFFFFFFF),
        ("index", "u32", 1, 0xFFFFFFFF),
        ("before", "bytes", 32),
        ("after", "bytes", 32),
    )),
    (0xB0, "chain_begun", "event", "", "", (
        ("reason", "enum", "ChainReason"),
        ("memory_id", "bytes", 4),
        ("index", "u32", 0, 0xFFFFFFFF),
        ("hash", "bytes", 32),
    )),
    (0xB1, "chain_key_given", "event", "", "", (("host_id", "bytes", 8),)),
    (0xB2, "house_changed", "event", "", "", (
        ("key", "bytes", 32),
        ("site", "text", 1, 24),
        ("host_id", "bytes", 8),
        ("person", "u32", 0, 0xFFFFFFFF),
    )),
    (0xB3, "reset_used", "event", "", "", (
        ("house", "bytes", 32),
        ("count", "u32", 0, 0xFFFFFFFF),
    )),
    (0xB4, "certificate_used", "event", "", "", (
        ("host_id", "bytes", 8),
        ("certificate", "bytes", 16),
        ("person", "text", 1, 32),
        ("role", "enum", "Role"),
        ("request", "u8", 0, 255),
        ("request_number", "u32", 0, 0xFFFFFFFF),
    )),
    (0xB5, "revocations_taken", "event", "", "", (
        ("number", "u32", 0, 0xFFFFFFFF),
        ("count", "u16", 0, MAX_REVOKED),
        ("host_id", "bytes", 8),
    )),
    # Commit and reveal ------------------------------------------------------------------------
    (0xC0, "commit_shuffle", "command", "commitment_is", "table", (("deck_id", "u32", 1, 0xFFFFFFFF),)),
    (0xC1, "commitment_is", "answer", "", "", (
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("commitment", "bytes", 32),
    )),
    (0xC2, "shuffle_with", "command", "shuffle_begun", "table", (
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("nonce", "bytes", 32),
    )),
    (0xC3, "reveal_shuffle", "query", "shuffle_revealed", "table dealer floor service lab", (
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
    )),
    (0xC4, "shuffle_revealed", "answer", "", "", (
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("cards", "u16", 1, 418),
        ("commitment", "bytes", 32),
        ("seed", "bytes", 32),
        ("nonce", "bytes", 32),
    )),
    (0xC5, "shuffle_slots", "query", "shuffle_slots_are", "table dealer floor service lab", (
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("first", "u16", 0, 417),
    )),
    (0xC6, "shuffle_slots_are", "answer", "", "", (
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("first", "u16", 0, 417),
        ("slots", "array", "u16", 0, 32, 0, 0xFFFF),
    )),
    (0xC7, "rng_samples", "query", "rng_samples_are", "lab", (
        ("source", "enum", "RngSource"),
        ("count", "u8", 1, 128),
    )),
    (0xC8, "shuffle_committed", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("commitment", "bytes", 32),
    )),
    (0xC9, "shuffle_dropped", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
        ("reason", "enum", "DropReason"),
    )),
    (0xCA, "shuffle_revealable", "event", "", "", (
        ("deck_id", "u32", 1, 0xFFFFFFFF),
        ("shuffle_id", "u32", 1, 0xFFFFFFFF),
    )),
    (0xCB, "rng_samples_are", "answer", "", "", (
        ("source", "enum", "RngSource"),
        ("samples", "blob", 0, 128),
    )),
)

# Ids kept for messages that are not built yet: (id, name). No other message may take them.
RESERVED = (
    (0xD0, "update_begin"), (0xD1, "update_data"), (0xD2, "update_finish"), (0xD3, "update_progress"),
)

# Fields that are hidden on the wire by a pad of the session: (message, field). Each is the last 32 bytes.
HIDDEN = (("set_key", "wrapped"), ("shuffle_with", "nonce"), ("chain_key_is", "wrapped"))
# Of those, what no file of the table PC may hold.
NEVER_KEPT = ("set_key", "chain_key_is")

# Every sensor, in the order of ``Sensor``: its name; the halves its edges go to (none for doors, buttons and
# supply, which the controller handles); the half that must see it at its clear level before it is believed to
# be empty; that level; whether it would tell the slots of a shuffle at work.
SENSORS = (
    ("entry", "shuffler", "shuffler", 0, True),
    ("insertion", "shuffler", "shuffler", 0, True),
    ("exit", "shoe", "shoe", 0, False),
    ("tray", "shuffler", "", 0, True),
    ("chamber", "shuffler", "shuffler", 0, True),
    ("store", "shuffler shoe", "shuffler", 0, False),
    ("shoe", "shoe", "shoe", 0, False),
    ("exit_tray", "shoe", "shoe", 0, False),
    ("elevator", "shuffler", "", 0, True),
    ("elevator_home", "shuffler", "", 0, True),
    ("gripper", "shuffler", "", 0, True),
    ("shelf", "shuffler", "", 0, False),
    ("pusher_home", "shuffler shoe", "", 0, False),
    ("pusher_end", "shoe", "", 0, False),
    ("height", "shuffler", "", 0, True),
    ("shuffler_door", "", "shuffler", 1, False),
    ("shoe_door", "", "shoe", 1, False),
    ("left_button", "", "", 0, False),
    ("right_button", "", "", 0, False),
    ("feed_stall", "shuffler", "", 0, False),
    ("insert_stall", "shuffler", "", 0, False),
    ("deal_stall", "shoe", "", 0, False),
    ("hot", "", "", 0, False),
    ("supply_low", "", "", 0, False),
)

# Messages that came with a later minor than 0: (name, minor). A peer of an older minor is not
# sent them.
SINCE: tuple[tuple[str, int], ...] = ()

# Why a request is refused: (code, name, details). Codes are frozen; new ones may be added.
ERRORS = (
    (1, "unknown_message", (("message", "u8", 0, 255),)),
    (2, "bad_field", (("field", "u8", 0, 255),)),
    (3, "wrong_role", (("role", "u8", 0, 255),)),
    (4, "wrong_state", (
        ("state", "u8", 0, 255), ("allowed", "u32", 0, 0xFFFFFFFF), ("half", "u8", 0, 255),
    )),
    (5, "not_owner", (("owner", "bytes", 8),)),
    (6, "owner_held", (("owner", "bytes", 8),)),
    (7, "version_mismatch", (("major", "u8", 0, 255), ("minor", "u8", 0, 255))),
    (8, "stale", (("round_id", "u32", 0, 0xFFFFFFFF), ("stack", "u8", 0, 255))),
    (9, "not_executed", ()),
    (10, "interrupted", ()),
    (11, "forgotten", ()),
    (12, "bad_credential", (("slot", "u8", 0, 255),)),
    (13, "too_soon", (("wait_ms", "u16", 0, 0xFFFF),)),
    (14, "no_such_key", (("slot", "u8", 0, 255),)),
    (15, "not_provisioned", ()),
    (16, "already_provisioned", ()),
    (17, "bad_proof", ()),
    (18, "not_supported", ()),
    (19, "device_fault", (("fault", "u8", 0, 255),)),
    (20, "memory_failed", ()),
    (21, "not_allowed", (("reason", "u8", 0, 255),)),
    (22, "keys_damaged", ()),
    (23, "provisioning_closed", ()),
    (24, "busy", (("free", "u16", 0, 0xFFFF),)),
    (25, "number_ahead", (("newest", "u32", 0, 0xFFFFFFFF),)),
    (26, "reset_required", ()),
    (27, "certificate_refused", (("reason", "u8", 0, 255),)),
)

# What each end counts, in the order of the ``counters_are`` message.
COUNTERS = (
    "frames_in", "frames_out", "bad_crc", "bad_length", "bad_overrun", "bad_encoding",
    "malformed", "foreign", "reflected", "bad_mac", "replayed", "duplicates", "out_of_window",
    "retransmitted", "timeouts", "bare_acks", "handshakes", "sessions", "bad_proofs", "late_answers",
    "repeats", "busy",
)

# What the machine counts of its own wear, in the order of the ``wear_is`` message.
WEAR = (
    "shuffles", "rounds", "cards_fed", "cards_dealt", "retries", "faults", "jams_tray", "jams_feed",
    "jams_entry", "jams_insertion", "jams_chamber", "jams_store", "jams_pusher", "jams_shoe",
    "jams_deal", "jams_exit", "jams_exit_tray", "jams_controller", "feed_ms", "insert_ms", "deal_ms",
    "feed_permille", "deal_permille",
)
