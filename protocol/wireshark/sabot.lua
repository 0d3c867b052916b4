-- Sabot's wire for Wireshark: one frame a packet on link type USER0 (147), as sent, with its delimiter.
--
-- Generated from the schema by sabot_protocol.generate.wireshark: do not edit.
-- It shows frames and says what is wrong with them; it cannot check a MAC, because it has no key.

local sabot = Proto("sabot", "Sabot shuffler and dealing shoe")
local NAMES, FLAGS = {}, {}

-- Constants
local BAD_CRC = "crc"
local BAD_LENGTH = "length"
local BAD_OVERRUN = "overrun"
local BAD_ENCODING = "encoding"
local MAX_BLOCK = 254
local CRC_SIZE = 4
local HEADER_SIZE = 18
local MAC_SIZE = 8
local FROZEN_BELOW = 64
local RESOLVE = 1
local SEALED_TO_DEVICE = 3
local SEALED_TO_HOST = 4
local CLEAR_TO_DEVICE = 1
local CLEAR_TO_HOST = 2
local BARE = 0
local REQUEST = 1
local ANSWER = 2
local EVENT = 3
local EVENT_ACK = 4
local GAP = 5
local CLOSE = 6

-- Names of numbers
NAMES.direction = {
  [1] = "clear to device", [2] = "clear to host", [3] = "sealed to device", [4] = "sealed to host",
}
NAMES.kind = {
  [0] = "bare", [1] = "request", [2] = "answer", [3] = "event", [4] = "event_ack", [5] = "gap",
  [6] = "close",
}
NAMES.message = {
  [0] = "none", [1] = "identify", [2] = "identity", [3] = "provision", [4] = "provisioned",
  [5] = "hello", [6] = "challenge", [7] = "prove", [8] = "refused", [9] = "no_session",
  [37] = "reset_statement", [43] = "reset_is", [16] = "status", [17] = "status_report",
  [18] = "attach", [19] = "attached", [20] = "detach", [21] = "elevate", [22] = "elevated",
  [23] = "component", [24] = "component_is", [29] = "set_key", [30] = "remove_key",
  [32] = "evict_owner", [33] = "chain_key", [39] = "chain_key_is", [34] = "house_key",
  [35] = "certificate", [36] = "revocations", [44] = "revocations_are", [38] = "evidence",
  [40] = "evidence_is", [41] = "checkpoint", [42] = "checkpoint_is", [63] = "done",
  [64] = "set_clock", [66] = "locate", [67] = "counters", [68] = "counters_are", [69] = "trace",
  [70] = "trace_is", [71] = "set_game", [72] = "game", [73] = "game_is", [74] = "log",
  [75] = "log_is", [76] = "key_slots", [77] = "key_slots_are", [78] = "call_floor",
  [80] = "register_deck", [81] = "remove_deck", [82] = "shuffle", [83] = "shuffle_begun",
  [84] = "open_round", [85] = "dispense_stack", [86] = "end_round", [87] = "void_round",
  [88] = "clear_fault", [89] = "close_bets", [90] = "play_one_deck", [91] = "deliver_deck",
  [92] = "load_shoe", [93] = "burn_cards", [94] = "draw_cards", [95] = "end_shoe",
  [96] = "simulate_round", [97] = "reveal_round", [98] = "faces", [99] = "faces_are",
  [100] = "decks", [101] = "decks_are", [102] = "whereabouts", [103] = "whereabouts_are",
  [104] = "last_round", [105] = "last_round_is", [106] = "stop", [107] = "purge",
  [108] = "path_inspected", [112] = "mark_out_of_order", [113] = "return_to_service",
  [114] = "service_mode", [115] = "self_test", [116] = "jog", [117] = "calibrate",
  [118] = "calibration", [119] = "calibration_is", [120] = "empty_machine", [121] = "sensors",
  [122] = "sensors_are", [123] = "wear", [124] = "wear_is", [125] = "start_loader", [128] = "booted",
  [129] = "clock_changed", [130] = "owner_changed", [131] = "elevation_used", [132] = "key_changed",
  [133] = "located", [134] = "buttons", [135] = "host_started", [138] = "owner_evicted",
  [139] = "proofs_refused", [142] = "key_removed", [136] = "floor_called", [137] = "game_changed",
  [140] = "deck_registered", [141] = "calibrated", [143] = "faces_revealed",
  [144] = "shuffler_changed", [145] = "shoe_changed", [146] = "deck_counted",
  [147] = "stack_dispensed", [148] = "stack_taken", [149] = "round_ended", [150] = "round_voided",
  [151] = "fault_raised", [152] = "fault_cleared", [153] = "deck_hours", [154] = "deck_removed",
  [155] = "bets_closed", [156] = "deck_delivered", [157] = "cards_drawn", [158] = "cards_taken",
  [159] = "cover_card_seen", [160] = "card_exposed", [161] = "last_hand", [162] = "shoe_ended",
  [163] = "out_of_order_changed", [164] = "self_tested", [165] = "emptied", [166] = "retried",
  [167] = "stopped", [168] = "purged", [169] = "path_inspected_by", [170] = "presence_shown",
  [171] = "chain_checkpoint", [172] = "hands_changed", [173] = "provisioning_ended",
  [174] = "roller_times", [175] = "events_lost", [176] = "chain_begun", [177] = "chain_key_given",
  [178] = "house_changed", [179] = "reset_used", [180] = "certificate_used",
  [181] = "revocations_taken", [192] = "commit_shuffle", [193] = "commitment_is",
  [194] = "shuffle_with", [195] = "reveal_shuffle", [196] = "shuffle_revealed",
  [197] = "shuffle_slots", [198] = "shuffle_slots_are", [199] = "rng_samples",
  [200] = "shuffle_committed", [201] = "shuffle_dropped", [202] = "shuffle_revealable",
  [203] = "rng_samples_are",
}
NAMES.error = {
  [0] = "ok", [1] = "unknown_message", [2] = "bad_field", [3] = "wrong_role", [4] = "wrong_state",
  [5] = "not_owner", [6] = "owner_held", [7] = "version_mismatch", [8] = "stale",
  [9] = "not_executed", [10] = "interrupted", [11] = "forgotten", [12] = "bad_credential",
  [13] = "too_soon", [14] = "no_such_key", [15] = "not_provisioned", [16] = "already_provisioned",
  [17] = "bad_proof", [18] = "not_supported", [19] = "device_fault", [20] = "memory_failed",
  [21] = "not_allowed", [22] = "keys_damaged", [23] = "provisioning_closed", [24] = "busy",
  [25] = "number_ahead", [26] = "reset_required", [27] = "certificate_refused",
}
NAMES.counter = {
  [1] = "frames_in", [2] = "frames_out", [3] = "bad_crc", [4] = "bad_length", [5] = "bad_overrun",
  [6] = "bad_encoding", [7] = "malformed", [8] = "foreign", [9] = "reflected", [10] = "bad_mac",
  [11] = "replayed", [12] = "duplicates", [13] = "out_of_window", [14] = "retransmitted",
  [15] = "timeouts", [16] = "bare_acks", [17] = "handshakes", [18] = "sessions", [19] = "bad_proofs",
  [20] = "late_answers", [21] = "repeats", [22] = "busy",
}
NAMES.Role = {
  [0] = "observer", [1] = "table", [2] = "dealer", [3] = "floor", [4] = "service", [5] = "lab",
}
NAMES.AttachMode = {
  [0] = "observer", [1] = "owner",
}
NAMES.ClockQuality = {
  [0] = "unknown", [1] = "set", [2] = "stale",
}
NAMES.KeySlot = {
  [0] = "device", [1] = "observer",
}
NAMES.KeyState = {
  [0] = "unprovisioned", [1] = "provisioned", [2] = "keys_damaged",
}
NAMES.GapReason = {
  [1] = "overflow", [2] = "reboot", [3] = "memory_lost",
}
NAMES.BootReason = {
  [1] = "power", [2] = "watchdog", [3] = "requested", [4] = "brown_out", [5] = "unknown",
}
NAMES.ChainReason = {
  [1] = "provisioned", [2] = "memory_lost", [3] = "first_boot",
}
NAMES.Component = {
  [1] = "controller", [2] = "card_recognition", [3] = "rng",
}
NAMES.Back = {
  [1] = "red", [2] = "blue",
}
NAMES.ShufflerState = {
  [0] = "starting", [1] = "idle", [2] = "feeding", [3] = "storing", [4] = "stored", [5] = "jammed",
  [6] = "door_open", [7] = "service", [8] = "out_of_order", [9] = "holding", [10] = "unproved",
}
NAMES.ShoeState = {
  [0] = "starting", [1] = "empty", [2] = "loading", [3] = "ready", [4] = "round_open",
  [5] = "dispensing", [6] = "stack_waiting", [7] = "ejecting", [8] = "unproved", [9] = "jammed",
  [10] = "door_open", [11] = "service", [12] = "out_of_order", [13] = "stub_waiting",
  [14] = "blocked",
}
NAMES.Half = {
  [1] = "shuffler", [2] = "shoe",
}
NAMES.Sensor = {
  [0] = "entry", [1] = "insertion", [2] = "exit", [3] = "tray", [4] = "chamber", [5] = "store",
  [6] = "shoe", [7] = "exit_tray", [8] = "elevator", [9] = "elevator_home", [10] = "gripper",
  [11] = "shelf", [12] = "pusher_home", [13] = "pusher_end", [14] = "height", [15] = "shuffler_door",
  [16] = "shoe_door", [17] = "left_button", [18] = "right_button", [19] = "feed_stall",
  [20] = "insert_stall", [21] = "deal_stall", [22] = "hot", [23] = "supply_low",
}
NAMES.Place = {
  [1] = "tray", [2] = "feed", [3] = "entry", [4] = "insertion", [5] = "chamber", [6] = "store",
  [7] = "pusher", [8] = "shoe", [9] = "deal", [10] = "exit", [11] = "exit_tray", [12] = "controller",
}
NAMES.Verdict = {
  [1] = "correct", [2] = "misdealt", [3] = "card_missing", [4] = "card_extra", [5] = "unproved",
}
NAMES.Method = {
  [0] = "automated_shoe", [1] = "manual_shoe", [2] = "hand", [3] = "card_by_card",
}
NAMES.Part = {
  [1] = "feed", [2] = "insert", [3] = "deal", [4] = "elevator", [5] = "gripper", [6] = "shelf",
  [7] = "pusher",
}
NAMES.Calibration = {
  [1] = "blade_um", [2] = "card_um",
}
NAMES.RemoveReason = {
  [1] = "hours", [2] = "wrong_count", [3] = "damaged", [4] = "floor_order", [5] = "table_closed",
}
NAMES.VoidReason = {
  [1] = "floor_order", [2] = "face_up_card", [3] = "wrong_number", [4] = "shoe_failed",
  [5] = "stack_disturbed", [6] = "power_cut", [7] = "too_few_cards", [8] = "stopped",
}
NAMES.Fault = {
  [1] = "misfeed", [2] = "double_feed", [3] = "card_stuck", [4] = "insertion_failed",
  [5] = "height_mismatch", [6] = "grip_mismatch", [7] = "axis_lost", [8] = "switch_missed",
  [9] = "motor_stall", [10] = "sensor_disagrees", [11] = "count_wrong", [12] = "wrong_deck",
  [13] = "foreign_card", [14] = "face_up_card", [15] = "door_opened", [16] = "stack_disturbed",
  [17] = "over_temperature", [18] = "supply_low", [19] = "memory_damaged", [20] = "rng_failed",
  [21] = "clock_unknown", [22] = "watchdog_reset", [23] = "power_lost", [24] = "stopped",
}
NAMES.RngSource = {
  [1] = "noise", [2] = "generator",
}
NAMES.CertificateReason = {
  [1] = "no_house", [2] = "wrong_site", [3] = "forged", [4] = "time_unknown", [5] = "expired",
  [6] = "revoked", [7] = "no_revocations", [8] = "not_shown", [9] = "role_missing",
  [10] = "wrong_proof", [11] = "shown_before", [12] = "old_list", [13] = "bad_list",
}
NAMES.DropReason = {
  [1] = "replaced", [2] = "stopped", [3] = "deck_removed",
}
NAMES.Forbidden = {
  [1] = "two_decks_already", [2] = "same_back", [3] = "unknown_back", [4] = "deck_used_before",
  [5] = "no_such_deck", [6] = "not_its_turn", [7] = "other_deck_missing", [8] = "time_unknown",
  [9] = "past_its_hours", [10] = "bets_open", [11] = "tray_empty", [12] = "in_use",
  [13] = "another_deck", [14] = "not_cleared", [15] = "no_such_fault", [16] = "service_only",
  [17] = "stacks_missing", [18] = "last_hand_dealt", [19] = "other_method", [20] = "too_hot",
  [21] = "not_revealed", [22] = "not_delivered", [23] = "out_of_order", [24] = "too_many",
  [25] = "already_burnt", [26] = "hands_fixed", [27] = "not_opened_yet", [30] = "no_such_shuffle",
}

-- Flags, lowest bit first
FLAGS.IdentityFlag = {
  { "provisioned", 0x0001, about = "it has a key" },
  { "simulator", 0x0002, about = "it is a simulator, not a machine" },
  { "test_rng", 0x0004, about = "its shuffles are predictable; not for play" },
  { "keys_damaged", 0x0008, about = "its keys are damaged: it identifies itself and refuses everything else" },
}
FLAGS.StatusFlag = {
  { "owned", 0x0001, about = "a host owns it" },
  { "clock_known", 0x0002, about = "it knows the time" },
  { "round_open", 0x0004, about = "a round is open" },
  { "fault_latched", 0x0008, about = "a fault waits to be cleared" },
}
FLAGS.ButtonFlag = {
  { "left", 0x0001, about = "the left button" },
  { "right", 0x0002, about = "the right button" },
}

-- Declaring fields to Wireshark
local INTEGERS = {
  u8 = { 1, ProtoField.uint8 }, u16 = { 2, ProtoField.uint16 }, u32 = { 4, ProtoField.uint32 },
  i8 = { 1, ProtoField.int8 }, i16 = { 2, ProtoField.int16 }, i32 = { 4, ProtoField.int32 },
  enum = { 1, ProtoField.uint8 }, flags = { 2, ProtoField.uint16 },
}
local SIGNED = { i8 = true, i16 = true, i32 = true }
local MESSAGES, ERRORS, declared = {}, {}, {}

local function declare(field)
  declared[#declared + 1] = field
  return field
end

local function integer(type, abbreviation, field)
  local names = type ~= "array" and field.names or nil
  return declare(INTEGERS[type][2](
    abbreviation, field.name, field.bits and base.HEX or base.DEC, names, nil, field.about))
end

-- One field: { name, type, limits, names or bits of an integer, about }.
local function prepare(prefix, row)
  local field = { name = row[1], type = row[2], names = row.names, bits = row.bits, about = row.about }
  local abbreviation = "sabot." .. prefix .. field.name
  if field.type == "array" then
    field.item, field.least, field.most, field.low, field.high = row[3], row[4], row[5], row[6], row[7]
    field.item_size = INTEGERS[field.item][1]
    field.shown = integer(field.item, abbreviation, { name = field.name, about = field.about })
  elseif field.type == "text" then
    field.item_size, field.least, field.most = 1, row[3], row[4]
    field.shown = declare(ProtoField.string(abbreviation, field.name, base.UNICODE, field.about))
  elseif field.type == "blob" then
    field.item_size, field.least, field.most = 1, row[3], row[4]
    field.shown = declare(ProtoField.bytes(abbreviation, field.name, base.COLON, field.about))
  elseif field.type == "bytes" then
    field.size = row[3]
    field.shown = declare(ProtoField.bytes(abbreviation, field.name, base.COLON, field.about))
  else
    field.size, field.low, field.high = INTEGERS[field.type][1], row[3], row[4]
    field.shown = integer(field.type, abbreviation, field)
    for index, bit in ipairs(field.bits or {}) do
      field[index] = declare(ProtoField.bool(
        abbreviation .. "." .. bit[1], bit[1], 16, nil, bit[2], bit.about))
    end
  end
  return field
end

-- The fields sabot.<prefix>.<name> of one record, in wire order and by name. "at" is where a field of a
-- header begins.
local function record(prefix, rows)
  local fields, at = {}, 0
  for index, row in ipairs(rows) do
    local field = prepare(prefix == "" and "" or prefix .. ".", row)
    field.at, at = at, at + (field.size or 0)
    fields[index], fields[field.name] = field, field
  end
  return fields
end

local function message(id, name, kind, about, rows)
  MESSAGES[id] = {
    name = name, kind = kind, about = about, frozen = id < FROZEN_BELOW, fields = record(name, rows),
  }
end

local function error_details(code, name, about, rows)
  ERRORS[code] = { name = name, about = about, frozen = true, fields = record("error." .. name, rows) }
end

-- Every record of the wire: a field is { name, type, limits }
local HEADER = record("", {
  { "direction", "u8", 0, 255, names = NAMES.direction },
  { "session", "u16", 0, 65535 },
  { "counter", "u32", 0, 4294967295 },
  { "seq", "u8", 0, 255 },
  { "ack", "u8", 0, 255 },
  { "sack", "u16", 0, 65535 },
  { "kind", "u8", 0, 255, names = NAMES.kind },
  { "message", "u8", 0, 255, names = NAMES.message },
  { "flags", "u8", 0, 255 },
  { "request_id", "u32", 0, 4294967295 },
})
local EVENT_HEADER = record("event", {
  { "boot_id", "u32", 0, 4294967295 },
  { "ticks_ms", "u32", 0, 4294967295 },
  { "utc_s", "u32", 0, 4294967295 },
  { "utc_ms", "u16", 0, 65535 },
})
local EVENT_ACK_FIELDS = record("event_ack", {
  { "boot_id", "u32", 0, 4294967295 },
})
local GAP_FIELDS = record("gap", {
  { "from_boot", "u32", 0, 4294967295 },
  { "from_n", "u32", 0, 4294967295 },
  { "to_boot", "u32", 0, 4294967295 },
  { "to_n", "u32", 0, 4294967295 },
})

message(0x01, "identify", "clear", "Asks who is on the cable. Anybody may ask, at any time.", {})
message(0x02, "identity", "clear", "What a device says of itself to anybody; nothing in it is proved.", {
  { "major", "u8", 0, 255, about = "major version of the protocol; another major understands frozen messages only" },
  { "minor", "u8", 0, 255, about = "minor version of the protocol; a higher one only adds messages" },
  { "schema", "bytes", 8, about = "hash of the schema the device was built with" },
  { "flags", "u16", 0, 65535, bits = FLAGS.IdentityFlag, about = "bits of IdentityFlag; unknown ones are to be ignored" },
  { "boot_id", "u32", 0, 4294967295, about = "how often the device has started with this memory" },
  { "memory_id", "bytes", 4, about = "drawn when critical memory was new; another one means all was forgotten" },
  { "window", "u8", 1, 16, about = "messages the device takes before it must have acknowledged one (messages)" },
  { "max_payload", "u8", 192, 249, about = "longest payload of a frame the device takes (bytes)" },
  { "serial", "bytes", 8, about = "the device's serial number" },
  { "model", "text", 1, 24, about = "the device's model" },
  { "version", "text", 1, 24, about = "version of the device's software" },
})
message(0x03, "provision", "clear", "Gives a new device its key, over a cable that is trusted for this once.", {
  { "nonce", "bytes", 16, about = "random, to bind the answer to this request" },
  { "device_key", "bytes", 32, about = "the key that sessions with this device are proved with" },
  { "entropy", "bytes", 32, about = "random bytes of the host for the generator, which carries them forward" },
})
message(0x04, "provisioned", "clear", "The device has the key, and proves it.", {
  { "proof", "bytes", 16, about = "made from the new key, the request's nonce and the serial number" },
})
message(0x05, "hello", "clear", "A host asks for a session and says what it is.", {
  { "nonce", "bytes", 16, about = "random, to bind the device's proof to this handshake" },
  { "host_id", "bytes", 8, about = "the host's id, kept on its disk" },
  { "slot", "u8", 0, 255, names = NAMES.KeySlot, about = "which key the session is proved with: a number of KeySlot" },
  { "run", "u32", 0, 4294967295, about = "random number of this run of the host's program" },
  { "major", "u8", 0, 255, about = "major version of the host's protocol" },
  { "minor", "u8", 0, 255, about = "minor version of the host's protocol" },
  { "schema", "bytes", 8, about = "hash of the schema the host was built with" },
  { "window", "u8", 1, 16, about = "messages the host takes before it must have acknowledged one (messages)" },
  { "max_payload", "u8", 192, 249, about = "longest payload of a frame the host takes (bytes)" },
})
message(0x06, "challenge", "clear", "The device proves that it has the key and asks the host to do the same.", {
  { "proof", "bytes", 16, about = "made from the device key and everything both sides said" },
  { "host_nonce", "bytes", 16, about = "the nonce of the hello that is answered" },
  { "nonce", "bytes", 16, about = "random, to bind the host's proof to this handshake" },
  { "handshake", "u32", 0, 4294967295, about = "how many handshakes this boot has begun" },
  { "boot_id", "u32", 0, 4294967295, about = "how often the device has started with this memory" },
  { "memory_id", "bytes", 4, about = "drawn when critical memory was new; another one means all was forgotten" },
  { "serial", "bytes", 8, about = "the device's serial number" },
  { "major", "u8", 0, 255, about = "major version of the device's protocol" },
  { "minor", "u8", 0, 255, about = "minor version of the device's protocol" },
  { "schema", "bytes", 8, about = "hash of the schema the device was built with" },
  { "window", "u8", 1, 16, about = "messages the device takes before it must have acknowledged one (messages)" },
  { "max_payload", "u8", 192, 249, about = "longest payload of a frame the device takes (bytes)" },
  { "flags", "u16", 0, 65535, bits = FLAGS.IdentityFlag, about = "bits of IdentityFlag, proved here; unknown ones are to be ignored" },
})
message(0x07, "prove", "clear", "The host proves that it has the key; the session replaces the old one.", {
  { "session", "u16", 0, 65535, about = "short number of the session, taken from the handshake's hash" },
  { "proof", "bytes", 16, about = "made from the device key and everything both sides said" },
})
message(0x08, "refused", "clear", "The device does not go on with a clear request.", {
  { "nonce", "bytes", 16, about = "the nonce of the request that is refused" },
  { "error", "u8", 1, 255, names = NAMES.error, about = "code of the error; see the table of errors" },
})
message(0x09, "no_session", "clear", "The device got a sealed packet of a session it does not have; a hint, not proved.", {
  { "boot_id", "u32", 0, 4294967295, about = "how often the device has started with this memory" },
  { "session", "u16", 0, 65535, about = "short number of the session the device does not have" },
})
message(0x25, "reset_statement", "clear", "Asks for house and reset count, or shows the house's signature for a reset.", {
  { "nonce", "bytes", 16, about = "random, to bind the answer to this request" },
  { "proof", "blob", 0, 64, about = "the house's signature of the reset statement; empty only asks" },
})
message(0x2b, "reset_is", "clear", "The house that the device belongs to, its reset count, and whether a reset was accepted.", {
  { "nonce", "bytes", 16, about = "of the request" },
  { "bound", "u8", 0, 1, about = "1 if the device belongs to a house, so that a reset needs a statement" },
  { "house", "bytes", 32, about = "the house's public key; zeros without a house, or if the record is damaged" },
  { "count", "u32", 0, 4294967295, about = "how many reset statements were used; the next one is for this number" },
  { "accepted", "u8", 0, 1, about = "1 if the statement was accepted: the device takes a key now" },
})
message(0x10, "status", "query", "Asks how the device is.", {})
message(0x11, "status_report", "answer", "How the device is at this moment.", {
  { "uptime_s", "u32", 0, 4294967295, about = "time since the device started (s)" },
  { "utc_s", "u32", 0, 4294967295, about = "the device's UTC, since 1970; 0 while unknown (s)" },
  { "clock", "u8", 0, 255, names = NAMES.ClockQuality, about = "number of a ClockQuality" },
  { "shuffler", "u8", 0, 255, names = NAMES.ShufflerState, about = "number of a ShufflerState" },
  { "shoe", "u8", 0, 255, names = NAMES.ShoeState, about = "number of a ShoeState" },
  { "fault", "u8", 0, 255, names = NAMES.Fault, about = "number of the Fault that holds the machine; 0 for none" },
  { "flags", "u16", 0, 65535, bits = FLAGS.StatusFlag, about = "bits of StatusFlag; unknown ones are to be ignored" },
  { "round_id", "u32", 0, 4294967295, about = "the round that is open; 0 for none" },
  { "stack", "u8", 0, 255, about = "the last stack dispensed in it; 0 for none" },
})
message(0x12, "attach", "query", "Asks for events from a position on, as the owner or as an observer.", {
  { "mode", "u8", 0, 1, names = NAMES.AttachMode, about = "number of an AttachMode" },
  { "from_boot", "u32", 0, 4294967295, about = "boot of the last event the host has on disk; 0 if it has none" },
  { "from_n", "u32", 0, 4294967295, about = "number of that event in its boot" },
})
message(0x13, "attached", "answer", "Events now come; says who owns the device and what it remembers of this host.", {
  { "mode", "u8", 0, 1, names = NAMES.AttachMode, about = "number of the AttachMode that was granted" },
  { "known", "u8", 0, 1, about = "1 if newest_command is the truth; 0 if this host may be forgotten or is not the owner" },
  { "newest_command", "u32", 0, 4294967295, about = "highest command number of this host on record; 0 for all but the owner" },
  { "owner", "bytes", 8, about = "id of the host that owns the device; zeros for none" },
})
message(0x14, "detach", "query", "Ends the stream of events and gives up ownership and role.", {})
message(0x15, "elevate", "query", "Lets a person authorise one request of this session, named by its number and body.", {
  { "scheme", "u8", 0, 255, about = "how it is proved; 1: HMAC with the slot's key; 2: signature with a certificate's key" },
  { "slot", "u8", 0, 255, about = "the person's key slot, 2 to 13; in scheme 2 the role to act in" },
  { "request", "u8", 0, 255, names = NAMES.message, about = "id of the request that is authorised" },
  { "request_number", "u32", 0, 4294967295, about = "number of that request; in scheme 2 of the elevation itself; rises" },
  { "body_sha256", "bytes", 32, about = "SHA-256 of that request's body as sent; in scheme 2 before secrets are hidden" },
  { "proof", "blob", 16, 64, about = "made from the person's key, this session, and the fields before it" },
})
message(0x16, "elevated", "answer", "The proof was right: the request it names may be sent now.", {
  { "role", "u8", 0, 255, names = NAMES.Role, about = "number of the Role that the request has" },
  { "person", "u32", 0, 4294967295, about = "the person of the slot; of a certificate the first four bytes of its id" },
})
message(0x17, "component", "query", "Asks what one part of the software is.", {
  { "component", "u8", 1, 255, names = NAMES.Component, about = "number of a Component" },
})
message(0x18, "component_is", "answer", "Which software a part runs, by its hash.", {
  { "component", "u8", 1, 255, names = NAMES.Component, about = "number of a Component" },
  { "sha256", "bytes", 32, about = "SHA-256 of its software" },
  { "version", "text", 1, 24, about = "version of its software" },
})
message(0x1d, "set_key", "command", "Puts a key into a slot, hidden for its way over the wire.", {
  { "slot", "u8", 0, 255, names = NAMES.KeySlot, about = "which key: a number of KeySlot, or 2 to 13 for a person's" },
  { "role", "u8", 0, 255, names = NAMES.Role, about = "number of the person's Role; 1 for the device's key, 0 for the observers'" },
  { "person", "u32", 0, 4294967295, about = "the house's number of the person; 0 for the device's and the observers' key" },
  { "wrapped", "bytes", 32, about = "the key, hidden under a pad of this session and this request's number" },
})
message(0x1e, "remove_key", "command", "Empties a slot; its sessions and elevations end.", {
  { "slot", "u8", 0, 255, about = "which key; the device's own cannot be removed" },
})
message(0x20, "evict_owner", "query", "Takes the device from its owner, so that another host can attach.", {
  { "owner", "bytes", 8, about = "id of the host that is to give up the device; any other owner stays" },
})
message(0x21, "chain_key", "query", "Asks for the first key of the event chain, once, while a new device is provisioned.", {})
message(0x27, "chain_key_is", "answer", "The first key of the event chain, hidden for its way over the wire.", {
  { "boot_id", "u32", 1, 4294967295, about = "boot of the event chain_begun" },
  { "n", "u32", 1, 4294967295, about = "number of that event in its boot" },
  { "hash", "bytes", 32, about = "the chain's hash before its first event" },
  { "wrapped", "bytes", 32, about = "the key, hidden under a pad of this session and this request's number" },
})
message(0x22, "house_key", "query", "Hands over the public key of the device's house; signed by the old key if there is one.", {
  { "key", "bytes", 32, about = "the house's public key, Ed25519" },
  { "site", "text", 1, 24, about = "the device's site, printable ASCII without quotes and backslashes" },
  { "number", "u32", 0, 4294967295, about = "number of the rotation that names this key; 0 if the device had none" },
  { "old_until_s", "u32", 0, 4294967295, about = "until when the old key's certificates are good, as the rotation says (s)" },
  { "proof", "blob", 0, 64, about = "the old key's signature of the rotation; empty without a house" },
})
message(0x23, "certificate", "query", "Shows a person's certificate, which the device's house has signed.", {
  { "key", "bytes", 32, about = "the person's public key, Ed25519" },
  { "not_after_s", "u32", 0, 4294967295, about = "the certificate's last second, UTC since 1970 (s)" },
  { "person", "text", 1, 32, about = "the person's id, printable ASCII without quotes and backslashes" },
  { "roles", "u8", 0, 255, about = "a bit for each Role: 1 << its number; dealer, floor and service only" },
  { "site", "text", 1, 24, about = "the site that it is for; the device's" },
  { "signature", "bytes", 64, about = "the house's signature of the certificate" },
})
message(0x24, "revocations", "query", "Hands over the house's list of revoked certificates, a part in each message.", {
  { "number", "u32", 0, 4294967295, about = "number of the list; it rises with each list of a house" },
  { "count", "u16", 0, 250, about = "how many ids the list has" },
  { "first", "u16", 0, 250, about = "how many of them were sent before" },
  { "ids", "blob", 0, 144, about = "ids of 16 bytes, in the order of the list; up to nine" },
  { "signature", "blob", 0, 64, about = "the house's signature of the list, behind all ids; empty before" },
})
message(0x2c, "revocations_are", "answer", "The number of the list that the device keeps, and what it has of a newer one.", {
  { "known", "u8", 0, 1, about = "1 if the device keeps a list of its present house" },
  { "number", "u32", 0, 4294967295, about = "number of that list; 0 if there is none" },
  { "taken", "u16", 0, 250, about = "ids that the device has of the list that this host hands over" },
})
message(0x26, "evidence", "query", "Asks for one row of the ring that holds evidence only.", {
  { "from_n", "u32", 0, 4294967295, about = "the row wanted; the next one that is there is answered" },
})
message(0x28, "evidence_is", "answer", "One row of the ring of evidence, the first one from the number asked for on.", {
  { "n", "u32", 0, 4294967295, about = "number of this row in the ring; 0 if there is none" },
  { "newest", "u32", 0, 4294967295, about = "number of the newest row" },
  { "row", "blob", 0, 150, about = "head of the event, its id, clock quality and body, as they were reported" },
})
message(0x29, "checkpoint", "query", "Asks for the newest checkpoint; the device makes one if the newest event is another one.", {})
message(0x2a, "checkpoint_is", "answer", "The newest checkpoint, as it is in critical memory.", {
  { "event", "blob", 0, 84, about = "the event as it is hashed; empty before the first" },
})
message(0x3f, "done", "answer", "The request was accepted; there is nothing more to say.", {})
message(0x40, "set_clock", "command", "Tells the device the time.", {
  { "utc_s", "u32", 1767225600, 4294967295, about = "UTC, since 1970 (s)" },
  { "utc_ms", "u16", 0, 999, about = "thousandths of the second (ms)" },
})
message(0x42, "locate", "command", "Makes the device show itself by lamp and display.", {
  { "seconds", "u8", 1, 60, about = "for how long (s)" },
})
message(0x43, "counters", "query", "Asks for the counters of this cable.", {})
message(0x44, "counters_are", "answer", "The counters of this cable since the device started.", {
  { "values", "array", "u32", 1, 32, 0, 4294967295, names = NAMES.counter, about = "one number for each counter, in the order of its table" },
})
message(0x45, "trace", "query", "Asks for headers of the last messages on this cable.", {
  { "skip", "u8", 0, 99, about = "how many of the newest headers to leave out" },
})
message(0x46, "trace_is", "answer", "Headers of the last messages on this cable, newest first.", {
  { "kept", "u8", 0, 100, about = "how many headers the device keeps in all" },
  { "headers", "blob", 0, 160, about = "up to ten headers of 16 bytes, as the trace's layout says" },
})
message(0x47, "set_game", "command", "Sets the game that the machine serves, until it is set again.", {
  { "name", "text", 1, 24, about = "name of the rule set, for display and record" },
  { "method", "enum", names = NAMES.Method, about = "how cards are dealt" },
  { "decks", "u8", 1, 8, about = "decks of 52 that make one deck, or batch, of this game" },
  { "stack_cards", "u8", 1, 13, about = "cards in a stack" },
  { "deck_hours", "u16", 1, 65535, about = "how long a deck may be used from its opening on; 65535 for no limit (h)" },
})
message(0x48, "game", "query", "Asks which game the machine serves.", {})
message(0x49, "game_is", "answer", "The game the machine serves.", {
  { "name", "text", 0, 24, about = "name of the rule set; empty until one was set" },
  { "method", "enum", names = NAMES.Method, about = "how cards are dealt" },
  { "decks", "u8", 1, 8, about = "decks of 52 that make one deck, or batch" },
  { "stack_cards", "u8", 1, 13, about = "cards in a stack" },
  { "deck_hours", "u16", 1, 65535, about = "how long a deck may be used from its opening on; 65535 for no limit (h)" },
  { "one_deck", "u8", 0, 1, about = "1 if the floor chose one-deck play" },
})
message(0x4a, "log", "query", "Asks for one row of the log of the last events.", {
  { "from_n", "u32", 0, 4294967295, about = "the row wanted; the next one that is there is answered" },
})
message(0x4b, "log_is", "answer", "One row of the log, the first one from the number asked for on.", {
  { "n", "u32", 0, 4294967295, about = "number of this row; 0 if there is none" },
  { "newest", "u32", 0, 4294967295, about = "number of the newest row" },
  { "row", "blob", 0, 150, about = "head of the event, its id, clock quality and body, as they were reported" },
})
message(0x4c, "key_slots", "query", "Asks which key slots are set, and for whom.", {})
message(0x4d, "key_slots_are", "answer", "The slots that are set, in rising order; the three lists have the same length.", {
  { "open", "u8", 0, 1, about = "1 while the owner may still fill empty slots after provisioning" },
  { "slots", "array", "u8", 0, 14, 0, 13, about = "numbers of the slots" },
  { "roles", "array", "u8", 0, 14, 0, 255, names = NAMES.Role, about = "number of the Role that each gives" },
  { "persons", "array", "u32", 0, 14, 0, 4294967295, about = "the person of each; 0 for the device's and the observers'" },
})
message(0x4e, "call_floor", "command", "Calls the floor to the table, or ends the call; lamp and display show it.", {
  { "on", "u8", 0, 1, about = "1 calls, 0 ends the call" },
})
message(0x50, "register_deck", "command", "Makes a new deck known to the device.", {
  { "deck_id", "u32", 1, 4294967295, about = "number the host gives this deck, never used before" },
  { "back", "enum", names = NAMES.Back, about = "colour of its backs" },
  { "opened_utc_s", "u32", 1767225600, 4294967295, about = "when its box was opened, UTC since 1970; starts its hours (s)" },
})
message(0x51, "remove_deck", "command", "Takes a deck out of play for good.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck to take out" },
  { "reason", "enum", names = NAMES.RemoveReason, about = "why" },
})
message(0x52, "shuffle", "command", "Shuffles the deck that lies in the tray, without a nonce of the host.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck that lies in the tray" },
})
message(0x53, "shuffle_begun", "answer", "The shuffle has begun; events tell how it goes.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "number of this shuffle, rising" },
})
message(0x54, "open_round", "command", "Opens a round on the deck in the shoe.", {
  { "round_id", "u32", 1, 4294967295, about = "number the host gives this round, higher than any before" },
  { "deck_id", "u32", 1, 4294967295, about = "the deck the host expects in the shoe" },
})
message(0x55, "dispense_stack", "command", "Deals the next stack of the round into the exit tray.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "stack", "u8", 1, 17, about = "which stack of the round, from 1; always the next one" },
})
message(0x56, "end_round", "command", "Ends the round: the stub is ejected and all cards are counted.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
})
message(0x57, "void_round", "command", "Declares the round void.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "reason", "enum", names = NAMES.VoidReason, about = "why" },
})
message(0x58, "clear_fault", "command", "Says that a fault's cause is gone; the device checks with its sensors.", {
  { "fault", "enum", names = NAMES.Fault, about = "the fault that was dealt with" },
})
message(0x59, "close_bets", "command", "No more bets are taken, so many hands get stacks; given again, it corrects the number.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "hands", "u8", 2, 17, about = "how many stacks the round has, the dealer's included; fixed with the dealer's stack" },
})
message(0x5a, "play_one_deck", "command", "The floor chooses to go on with one deck, or with two again.", {
  { "on", "u8", 0, 1, about = "1 for one deck, 0 for two" },
})
message(0x5b, "deliver_deck", "command", "Ejects the whole deck in the shoe, for a manual shoe, the hand, or a cut.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck in the shoe" },
})
message(0x5c, "load_shoe", "command", "Says that a batch was cut and laid into the shoe by hand.", {
  { "deck_id", "u32", 1, 4294967295, about = "the batch that was laid in" },
})
message(0x5d, "burn_cards", "command", "Deals cards to be burnt, before the first round of a shoe.", {
  { "cards", "u8", 1, 10, about = "how many" },
})
message(0x5e, "draw_cards", "command", "Deals the next cards of a round that is dealt card by card.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "draw", "u8", 1, 17, about = "which draw of the round, from 1; always the next one" },
  { "cards", "u8", 1, 13, about = "how many cards, dealt as one packet" },
})
message(0x5f, "end_shoe", "command", "Ends a shoe: what is left comes out and all of it is counted.", {
  { "deck_id", "u32", 1, 4294967295, about = "the batch in the shoe" },
})
message(0x60, "simulate_round", "command", "Opens a round without wagers.", {
  { "round_id", "u32", 1, 4294967295, about = "number the host gives this round, higher than any before" },
  { "deck_id", "u32", 1, 4294967295, about = "the deck or batch the host expects in the shoe" },
})
message(0x61, "reveal_round", "command", "Says that the round's hands lie open; from now on the faces read may be asked for.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that has ended; dealt card by card, also the one in play" },
})
message(0x62, "faces", "query", "Asks for the faces the exit reader saw in one stack.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that was revealed" },
  { "stack", "u8", 1, 17, about = "which stack, or draw, from 1" },
})
message(0x63, "faces_are", "answer", "The faces of one stack, in the order dealt.", {
  { "round_id", "u32", 1, 4294967295, about = "the round" },
  { "stack", "u8", 1, 17, about = "which stack, or draw, from 1" },
  { "faces", "array", "u8", 0, 13, 0, 255, about = "0 to 51, by suit (SHDC) and rank from the ace; 255 if not read" },
})
message(0x64, "decks", "query", "Asks which decks are registered.", {})
message(0x65, "decks_are", "answer", "The decks in use.", {
  { "ids", "array", "u32", 0, 2, 1, 4294967295, about = "their numbers" },
  { "backs", "array", "u8", 0, 2, 0, 255, names = NAMES.Back, about = "numbers of Back, in the same order" },
  { "left_s", "array", "i32", 0, 2, -2147483648, 2147483647, about = "how long each may still be used; 0 while the time is unknown (s)" },
  { "last_played", "u32", 0, 4294967295, about = "the deck of the newest round; 0 for none" },
})
message(0x66, "whereabouts", "query", "Asks where the cards of a deck are.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck" },
})
message(0x67, "whereabouts_are", "answer", "Where the cards of a deck are, as far as it is known. 65535 means unknown.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck" },
  { "expected", "u16", 1, 418, about = "cards it must have (cards)" },
  { "proved", "u8", 0, 1, about = "1 if independent counts agree that all are there" },
  { "cards", "array", "u16", 7, 7, 0, 65535, about = "in tray, path, chamber, store, shoe, exit tray, hands (cards)" },
})
message(0x68, "last_round", "query", "Asks how the newest round ended; also after a power cut.", {})
message(0x69, "last_round_is", "answer", "The newest round.", {
  { "round_id", "u32", 0, 4294967295, about = "its number; 0 if there was none" },
  { "deck_id", "u32", 0, 4294967295, about = "its deck" },
  { "verdict", "u8", 0, 255, names = NAMES.Verdict, about = "number of its Verdict; 0 if it has none" },
  { "void", "u8", 0, 255, names = NAMES.VoidReason, about = "number of its VoidReason; 0 if it is not void" },
  { "count", "u16", 0, 65535, about = "cards counted in it (cards)" },
})
message(0x6a, "stop", "command", "Halts both halves as if their doors had been opened; an open round is void.", {})
message(0x6b, "purge", "command", "Turns the deal roller by one pitch and 40 mm: a card that no sensor sees comes out.", {})
message(0x6c, "path_inspected", "command", "The floor says that the shoe's path holds no card; the next count is only claimed.", {})
message(0x70, "mark_out_of_order", "command", "Takes the machine out of use until service has acted.", {})
message(0x71, "return_to_service", "command", "Service has acted: the machine tests itself and may be used again.", {})
message(0x72, "service_mode", "command", "Begins or ends service: live sensors, jogging, calibration.", {
  { "on", "u8", 0, 1, about = "1 begins, 0 ends" },
})
message(0x73, "self_test", "command", "Has both halves test themselves.", {})
message(0x74, "jog", "command", "Moves one part, in service. A roller turns for 250 ms; the same jog again lengthens that.", {
  { "part", "enum", names = NAMES.Part, about = "what to move" },
  { "amount", "i32", -200000, 200000, about = "of a roller 1 forward, -1 back, 0 stops it; um of the elevator; 0 or 1 else" },
})
message(0x75, "calibrate", "command", "Sets one calibration, kept with its date.", {
  { "what", "enum", names = NAMES.Calibration, about = "which calibration" },
  { "value", "i32", -10000, 10000, about = "its new value" },
})
message(0x76, "calibration", "query", "Asks for one calibration.", {
  { "what", "enum", names = NAMES.Calibration, about = "which calibration" },
})
message(0x77, "calibration_is", "answer", "One calibration.", {
  { "what", "enum", names = NAMES.Calibration, about = "which calibration" },
  { "value", "i32", -10000, 10000, about = "its value" },
  { "set_utc_s", "u32", 0, 4294967295, about = "when it was set, UTC since 1970; 0 if never (s)" },
})
message(0x78, "empty_machine", "command", "Brings every card inside out through the exit.", {})
message(0x79, "sensors", "query", "Asks what the sensors say at this moment.", {})
message(0x7a, "sensors_are", "answer", "What the sensors say. Encoders count from power-up and wrap at +-2**29 um.", {
  { "levels", "u32", 0, 4294967295, about = "bit n is the level of Sensor n" },
  { "height_um", "u32", 0, 200000, about = "the height read last (um)" },
  { "rollers_um", "array", "i32", 3, 3, -2147483648, 2147483647, about = "encoders of feed, insertion and deal roller (um)" },
})
message(0x7b, "wear", "query", "Asks what the machine has counted of its own wear.", {})
message(0x7c, "wear_is", "answer", "What the machine has counted of its own wear.", {
  { "values", "array", "u32", 1, 40, 0, 4294967295, about = "one number each, in the order of the table of wear" },
})
message(0x7d, "start_loader", "command", "Ends the application and starts what takes another one; the machine must be empty.", {})
message(0x80, "booted", "event", "The device has started; always the first event of a boot.", {
  { "reason", "enum", names = NAMES.BootReason, about = "why the device started" },
})
message(0x81, "clock_changed", "event", "The device's time was set.", {
  { "step_s", "i32", -2147483648, 2147483647, about = "how far the time moved; 0 when it was unknown before (s)" },
  { "quality", "enum", names = NAMES.ClockQuality, about = "how good the time is now" },
})
message(0x82, "owner_changed", "event", "Another host owns the device now, or none.", {
  { "owner", "bytes", 8, about = "id of the host that owns the device now; zeros for none" },
})
message(0x83, "elevation_used", "event", "A person's elevation was used for the request it names.", {
  { "host_id", "bytes", 8, about = "id of the host that asked" },
  { "slot", "u8", 2, 13, about = "the person's key slot" },
  { "role", "enum", names = NAMES.Role, about = "the person's role" },
  { "person", "u32", 0, 4294967295, about = "the person" },
  { "request", "u8", 0, 255, names = NAMES.message, about = "id of the request that was authorised" },
  { "request_number", "u32", 0, 4294967295, about = "number of that request" },
})
message(0x84, "key_changed", "event", "A key slot was written.", {
  { "slot", "u8", 0, 13, about = "which key" },
  { "role", "enum", names = NAMES.Role, about = "the role it gives" },
  { "person", "u32", 0, 4294967295, about = "the person it is for; 0 for the device's and the observers'" },
  { "host_id", "bytes", 8, about = "id of the host that asked; zeros for provisioning" },
  { "by", "u32", 0, 4294967295, about = "the person who authorised it; 0 if that was not asked for" },
})
message(0x85, "located", "event", "The device shows itself.", {
  { "seconds", "u8", 1, 60, about = "for how long (s)" },
})
message(0x86, "buttons", "event", "A button was pressed.", {
  { "pressed", "flags", bits = FLAGS.ButtonFlag, about = "the buttons that went down" },
})
message(0x87, "host_started", "event", "The owner is another run of its program than before: it was started, or started again.", {
  { "host_id", "bytes", 8, about = "id of the owner" },
  { "run", "u32", 0, 4294967295, about = "random number of this run of its program, as in hello" },
})
message(0x8a, "owner_evicted", "event", "A host was made to give up the device.", {
  { "owner", "bytes", 8, about = "id of the host that was the owner" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "the person who authorised it" },
})
message(0x8b, "proofs_refused", "event", "Wrong proofs were shown; those that follow soon are one event.", {
  { "slot", "u8", 0, 255, about = "the slot whose key was not shown; of the last one, if there are several" },
  { "count", "u32", 1, 4294967295, about = "how many this event stands for" },
  { "total", "u32", 1, 4294967295, about = "how many there were since the device was made" },
})
message(0x8e, "key_removed", "event", "A key slot was emptied.", {
  { "slot", "u8", 0, 13, about = "which key" },
  { "role", "enum", names = NAMES.Role, about = "the role it gave" },
  { "person", "u32", 0, 4294967295, about = "the person it was for" },
  { "host_id", "bytes", 8, about = "id of the host that asked" },
  { "by", "u32", 0, 4294967295, about = "the person who authorised it" },
})
message(0x88, "floor_called", "event", "The floor was called to the table, or the call has ended.", {
  { "on", "u8", 0, 1, about = "1 if it was called, 0 if the call has ended" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0x89, "game_changed", "event", "The machine serves another game, or another number of decks.", {
  { "name", "text", 0, 24, about = "name of the rule set; empty until one was set" },
  { "method", "enum", names = NAMES.Method, about = "how cards are dealt" },
  { "decks", "u8", 1, 8, about = "decks of 52 that make one deck, or batch" },
  { "stack_cards", "u8", 1, 13, about = "cards in a stack" },
  { "deck_hours", "u16", 1, 65535, about = "how long a deck may be used from its opening on; 65535 for no limit (h)" },
  { "one_deck", "u8", 0, 1, about = "1 if the floor chose one-deck play" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0x8c, "deck_registered", "event", "A new deck has come to the table.", {
  { "deck_id", "u32", 1, 4294967295, about = "number of the deck" },
  { "back", "enum", names = NAMES.Back, about = "colour of its backs" },
  { "opened_utc_s", "u32", 1767225600, 4294967295, about = "when its box was opened, UTC since 1970 (s)" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0x8d, "calibrated", "event", "A calibration was set.", {
  { "what", "enum", names = NAMES.Calibration, about = "which calibration" },
  { "value", "i32", -10000, 10000, about = "its new value" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0x8f, "faces_revealed", "event", "The faces of one stack, or draw, were sent to a host.", {
  { "round_id", "u32", 1, 4294967295, about = "the round" },
  { "stack", "u8", 1, 17, about = "which stack, or draw, from 1" },
  { "host_id", "bytes", 8, about = "id of the host that got them" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0x90, "shuffler_changed", "event", "The shuffler half is in another state.", {
  { "state", "enum", names = NAMES.ShufflerState, about = "the state it is in now" },
  { "deck_id", "u32", 0, 4294967295, about = "the deck in this half; 0 for none" },
})
message(0x91, "shoe_changed", "event", "The shoe half is in another state.", {
  { "state", "enum", names = NAMES.ShoeState, about = "the state it is in now" },
  { "deck_id", "u32", 0, 4294967295, about = "the deck in this half; 0 for none" },
  { "round_id", "u32", 0, 4294967295, about = "the round that is open; 0 for none" },
})
message(0x92, "deck_counted", "event", "A deck was fed to its end and counted.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck that was fed" },
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle it was fed for" },
  { "count", "u16", 0, 418, about = "cards counted (cards)" },
  { "expected", "u16", 1, 418, about = "cards the deck should have (cards)" },
})
message(0x93, "stack_dispensed", "event", "A stack lies in the exit tray.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "stack", "u8", 1, 17, about = "which stack of the round, from 1" },
  { "cards", "u8", 0, 52, about = "cards counted into it (cards)" },
})
message(0x94, "stack_taken", "event", "The stack was taken from the exit tray.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "stack", "u8", 1, 17, about = "which stack of the round, from 1" },
})
message(0x95, "round_ended", "event", "A round was ended and its deck counted.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that was ended" },
  { "verdict", "enum", names = NAMES.Verdict, about = "whether every card was accounted for" },
  { "stub", "u8", 0, 52, about = "cards ejected that no stack had used (cards)" },
  { "count", "u8", 0, 255, about = "cards counted in all, stacks and stub (cards)" },
})
message(0x96, "round_voided", "event", "A round is void. The first reason counts; a restart with failed memory adds power_cut.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is void" },
  { "reason", "enum", names = NAMES.VoidReason, about = "why" },
})
message(0x97, "fault_raised", "event", "Something is wrong and the half concerned has stopped.", {
  { "fault", "enum", names = NAMES.Fault, about = "what is wrong" },
  { "place", "enum", names = NAMES.Place, about = "where" },
  { "cards", "u16", 0, 418, about = "how many cards are concerned (cards)" },
  { "steps", "text", 0, 120, about = "what to do, at most three steps, as the display shows it" },
})
message(0x98, "fault_cleared", "event", "Sensors have shown that a fault is gone.", {
  { "fault", "enum", names = NAMES.Fault, about = "the fault that is gone" },
})
message(0x99, "deck_hours", "event", "A deck comes to the end of its hours, or is past it.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck" },
  { "left_s", "u32", 0, 4294967295, about = "how long it may still be used; 0 when its time is over (s)" },
})
message(0x9a, "deck_removed", "event", "A deck has left the table for good.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck" },
  { "reason", "enum", names = NAMES.RemoveReason, about = "why" },
})
message(0x9b, "bets_closed", "event", "No more bets are taken in the round.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "hands", "u8", 2, 17, about = "how many stacks the round has, the dealer's included" },
})
message(0x9c, "deck_delivered", "event", "A whole deck lies in the exit tray.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck" },
  { "count", "u16", 0, 418, about = "cards counted (cards)" },
  { "expected", "u16", 1, 418, about = "cards it must have (cards)" },
})
message(0x9d, "cards_drawn", "event", "Cards of a round dealt card by card, or burnt ones, lie in the exit tray.", {
  { "round_id", "u32", 0, 4294967295, about = "the round; 0 for burnt cards" },
  { "draw", "u8", 0, 255, about = "which draw of the round, from 1" },
  { "cards", "u8", 0, 255, about = "cards counted; a cover card is not one of them (cards)" },
})
message(0x9e, "cards_taken", "event", "They were taken.", {
  { "round_id", "u32", 0, 4294967295, about = "the round; 0 for burnt cards" },
  { "draw", "u8", 0, 255, about = "which draw of the round, from 1" },
})
message(0x9f, "cover_card_seen", "event", "The cover card has come: the hand is finished and one more is dealt.", {
  { "round_id", "u32", 0, 4294967295, about = "the round in which it came; 0 between rounds" },
})
message(0xa0, "card_exposed", "event", "A card came face up from a shoe that is dealt card by card.", {
  { "round_id", "u32", 0, 4294967295, about = "the round in which it came; 0 between rounds" },
})
message(0xa1, "last_hand", "event", "The round that was opened is the last of this shoe.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that was opened" },
})
message(0xa2, "shoe_ended", "event", "A shoe was dealt out and its cards counted.", {
  { "deck_id", "u32", 1, 4294967295, about = "the batch" },
  { "count", "u16", 0, 65535, about = "cards counted from its first card to its last (cards)" },
  { "expected", "u16", 1, 418, about = "cards it must have (cards)" },
})
message(0xa3, "out_of_order_changed", "event", "The machine was taken out of use, or given back to it.", {
  { "on", "u8", 0, 1, about = "1 if it is out of order" },
})
message(0xa4, "self_tested", "event", "A half has tested itself.", {
  { "half", "enum", names = NAMES.Half, about = "which half" },
  { "passed", "u8", 0, 1, about = "1 if all is sound" },
})
message(0xa5, "emptied", "event", "Every card that was inside has come out.", {
  { "cards", "u16", 0, 65535, about = "cards counted at the exit (cards)" },
})
message(0xa6, "retried", "event", "The shuffler half has helped itself: a card was backed up and drawn again.", {
  { "fault", "enum", names = NAMES.Fault, about = "what had gone wrong" },
  { "place", "enum", names = NAMES.Place, about = "where" },
})
message(0xa7, "stopped", "event", "A host has stopped both halves.", {
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0xa8, "purged", "event", "The shoe's path was purged; says how many cards came past the exit.", {
  { "cards", "u8", 0, 255, about = "cards that came past the exit (cards)" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0xa9, "path_inspected_by", "event", "A person states that the shoe's path was inspected by eye and holds no card.", {
  { "deck_id", "u32", 0, 4294967295, about = "the deck that came out short" },
  { "missing", "u16", 0, 418, about = "how many of its cards were not accounted for (cards)" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose claim it is; 0 for none" },
})
message(0xaa, "presence_shown", "event", "Somebody held the contact in the logic compartment: keys cleared, provisioning open.", {
  { "was", "enum", names = NAMES.KeyState, about = "the state of the keys before" },
  { "now", "enum", names = NAMES.KeyState, about = "the state afterwards; keys_damaged if critical memory did not take it" },
})
message(0xab, "chain_checkpoint", "event", "The device's chain of events up to the one before, with a tag of the chain's key.", {
  { "boot_id", "u32", 1, 4294967295, about = "boot of the last event before this one" },
  { "n", "u32", 1, 4294967295, about = "number of that event in its boot" },
  { "index", "u32", 0, 4294967295, about = "chain index of that event" },
  { "hash", "bytes", 32, about = "the chain's hash up to that event" },
  { "tag", "bytes", 16, about = "made with the checkpoint's own chain key from all that stands before it" },
})
message(0xac, "hands_changed", "event", "The number of hands of the round was corrected.", {
  { "round_id", "u32", 1, 4294967295, about = "the round that is open" },
  { "before", "u8", 2, 17, about = "how many hands it had" },
  { "hands", "u8", 2, 17, about = "how many it has now, the dealer's included" },
  { "host_id", "bytes", 8, about = "id of the host that asked for it" },
  { "person", "u32", 0, 4294967295, about = "number of the person whose key authorised it; 0 for none" },
})
message(0xad, "provisioning_ended", "event", "No key was given in time; the contact must be held again.", {})
message(0xae, "roller_times", "event", "How long cards took at each roller since the shuffle before: a sign of wear.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle that has just ended" },
  { "counts", "array", "u16", 3, 3, 0, 65535, about = "cards timed at feed, insertion, deal roller without help" },
  { "sums", "array", "u32", 3, 3, 0, 4294967295, about = "for each roller the sum of the times (0.1 ms)" },
  { "squares", "array", "u32", 3, 3, 0, 4294967295, about = "for each roller the sum of the squares, in units of (0.1 ms)^2" },
})
message(0xaf, "events_lost", "event", "Events that the device itself has lost, with the chain's hashes on both sides.", {
  { "reason", "enum", names = NAMES.GapReason, about = "why" },
  { "from_boot", "u32", 0, 4294967295, about = "boot of the newest event that the owner had acknowledged; 0 for none" },
  { "from_n", "u32", 0, 4294967295, about = "number of that event in its boot" },
  { "to_boot", "u32", 1, 4294967295, about = "boot of the last event lost" },
  { "to_n", "u32", 1, 4294967295, about = "number of that event in its boot" },
  { "count", "u32", 1, 4294967295, about = "how many may be lost" },
  { "index", "u32", 1, 4294967295, about = "chain index of the last event lost" },
  { "before", "bytes", 32, about = "the chain's hash up to the acknowledged event; zeros if that is in no chain" },
  { "after", "bytes", 32, about = "the chain's hash up to the last event lost" },
})
message(0xb0, "chain_begun", "event", "A chain of events begins with this one.", {
  { "reason", "enum", names = NAMES.ChainReason, about = "why" },
  { "memory_id", "bytes", 4, about = "the memory id that the chain's first hash is made from" },
  { "index", "u32", 0, 4294967295, about = "chain index of the last event of the chain before; 0 if there was none" },
  { "hash", "bytes", 32, about = "hash of the chain before; zeros if there was none or it is unknown" },
})
message(0xb1, "chain_key_given", "event", "The first key of the event chain left the device.", {
  { "host_id", "bytes", 8, about = "the host that has it now" },
})
message(0xb2, "house_changed", "event", "The device belongs to this house and site from now on.", {
  { "key", "bytes", 32, about = "the house's public key" },
  { "site", "text", 1, 24, about = "the device's site" },
  { "host_id", "bytes", 8, about = "the host that handed it over" },
  { "person", "u32", 0, 4294967295, about = "the person of service who authorised it; 0 while the device was provisioned" },
})
message(0xb3, "reset_used", "event", "The device was given a key under a reset statement of its house.", {
  { "house", "bytes", 32, about = "the house's public key" },
  { "count", "u32", 0, 4294967295, about = "the number that the statement was for" },
})
message(0xb4, "certificate_used", "event", "A person authorised a request by a certificate.", {
  { "host_id", "bytes", 8, about = "id of the host that asked" },
  { "certificate", "bytes", 16, about = "the certificate's id" },
  { "person", "text", 1, 32, about = "the person's id, as the certificate has it" },
  { "role", "enum", names = NAMES.Role, about = "the role that the person took for this request" },
  { "request", "u8", 0, 255, names = NAMES.message, about = "id of the request that was authorised" },
  { "request_number", "u32", 0, 4294967295, about = "number of that request" },
})
message(0xb5, "revocations_taken", "event", "The device keeps a newer list of revoked certificates from now on.", {
  { "number", "u32", 0, 4294967295, about = "number of the list" },
  { "count", "u16", 0, 250, about = "how many certificates it names" },
  { "host_id", "bytes", 8, about = "id of the host that handed it over" },
})
message(0xc0, "commit_shuffle", "command", "Asks the device to bind itself to the seed of a deck's next shuffle.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck that is to be shuffled" },
})
message(0xc1, "commitment_is", "answer", "What the device is bound to.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "number of the shuffle, rising with every commitment" },
  { "commitment", "bytes", 32, about = "SHA-256 of device, deck, shuffle, cards and seed" },
})
message(0xc2, "shuffle_with", "command", "Begins the shuffle the device is bound to, with the host's nonce.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle the device is bound to" },
  { "nonce", "bytes", 32, about = "the host's random bytes, made after the commitment; hidden by the session's pad" },
})
message(0xc3, "reveal_shuffle", "query", "Asks for a shuffle's seed, once its deck has been fed again.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle" },
})
message(0xc4, "shuffle_revealed", "answer", "Seed and nonce of a shuffle: all its slots follow from them.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle" },
  { "deck_id", "u32", 1, 4294967295, about = "the deck that was shuffled" },
  { "cards", "u16", 1, 418, about = "how many cards it has" },
  { "commitment", "bytes", 32, about = "what the device was bound to" },
  { "seed", "bytes", 32, about = "the seed" },
  { "nonce", "bytes", 32, about = "the host's nonce; zeros if it gave none" },
})
message(0xc5, "shuffle_slots", "query", "Asks where the cards of a shuffle really went, once its deck has been fed again.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle" },
  { "first", "u16", 0, 417, about = "the card to begin with, from 0 in the order they were fed" },
})
message(0xc6, "shuffle_slots_are", "answer", "Where cards went, each as the height of the packet under it proved it.", {
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle" },
  { "first", "u16", 0, 417, about = "the card the first slot is of" },
  { "slots", "array", "u16", 0, 32, 0, 65535, about = "for each card how many lay above it then; none behind the last" },
})
message(0xc7, "rng_samples", "query", "Asks for raw noise, or for bytes of the generator, for a laboratory's own tests.", {
  { "source", "enum", names = NAMES.RngSource, about = "where from" },
  { "count", "u8", 1, 128, about = "how many bytes" },
})
message(0xc8, "shuffle_committed", "event", "The device is bound to the seed of a shuffle.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck that is to be shuffled" },
  { "shuffle_id", "u32", 1, 4294967295, about = "number of the shuffle, rising with every commitment" },
  { "commitment", "bytes", 32, about = "SHA-256 of device, deck, shuffle, cards and seed" },
})
message(0xc9, "shuffle_dropped", "event", "A shuffle the device was bound to will never be finished or revealed.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck" },
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle" },
  { "reason", "enum", names = NAMES.DropReason, about = "why" },
})
message(0xca, "shuffle_revealable", "event", "A deck has been fed again: the shuffle before may be revealed.", {
  { "deck_id", "u32", 1, 4294967295, about = "the deck that was fed again" },
  { "shuffle_id", "u32", 1, 4294967295, about = "the shuffle before" },
})
message(0xcb, "rng_samples_are", "answer", "Samples that were made for this answer and are used for nothing else.", {
  { "source", "enum", names = NAMES.RngSource, about = "where from" },
  { "samples", "blob", 0, 128, about = "raw noise has one sample a bit, the first in the highest bit" },
})

error_details(1, "unknown_message", "The device has no request with this id. Update the device, or the host, to the same version.", {
  { "message", "u8", 0, 255, names = NAMES.message, about = "id of the message" },
})
error_details(2, "bad_field", "A value is not allowed, or the message's length is wrong. Correct the field that is named; the host's own check should have caught it.", {
  { "field", "u8", 0, 255, about = "index of the first field that is wrong, from 0; 255 for the message's length" },
})
error_details(3, "wrong_role", "The session's role may not ask for this. Elevate to a role that may, and ask again.", {
  { "role", "u8", 0, 255, names = NAMES.Role, about = "number of the Role the session has" },
})
error_details(4, "wrong_state", "The machine cannot do this in the state it is in. Wait for one of the allowed states, or bring the machine into it.", {
  { "state", "u8", 0, 255, about = "number of the state of the half concerned" },
  { "allowed", "u32", 0, 4294967295, about = "bit n is set for each state n in which it would be allowed" },
  { "half", "u8", 0, 255, names = NAMES.Half, about = "number of the Half concerned" },
})
error_details(5, "not_owner", "Only the owner gives commands, and this host is not the owner. Attach as owner, and ask again.", {
  { "owner", "bytes", 8, about = "id of the host that owns the device; zeros for none" },
})
error_details(6, "owner_held", "Another host owns the device. Let the owner detach, or attach as observer.", {
  { "owner", "bytes", 8, about = "id of the host that owns the device" },
})
error_details(7, "version_mismatch", "The versions differ: only frozen messages are understood. Update the side with the lower version; updates work between any two versions.", {
  { "major", "u8", 0, 255, about = "major version of the device's protocol" },
  { "minor", "u8", 0, 255, about = "minor version of the device's protocol" },
})
error_details(8, "stale", "The command names another round or stack than the machine's. Read the status and continue from its round and stack.", {
  { "round_id", "u32", 0, 4294967295, about = "the round the machine is at; 0 for none" },
  { "stack", "u8", 0, 255, about = "the last stack dispensed in it; 0 for none" },
})
error_details(9, "not_executed", "The command asked about was never executed and will not be. Give the command again, as a new one, if it is still wanted.", {})
error_details(10, "interrupted", "The command was begun, then the power failed; how far it got is unknown. Look at the machine and its status before anything else; a round that was open is void.", {})
error_details(11, "forgotten", "The device no longer knows the result of the command. Look at the machine and its status; do not repeat the command blindly.", {})
error_details(12, "bad_credential", "The proof does not fit the slot's key, or it is not a new one. Give the key of the person in this slot.", {
  { "slot", "u8", 0, 255, about = "the slot whose key was not shown" },
})
error_details(13, "too_soon", "A wrong proof was shown on this cable a moment ago. Wait a second, then try again.", {
  { "wait_ms", "u16", 0, 65535, about = "how long until the next try (ms)" },
})
error_details(14, "no_such_key", "No key is set in this slot. Ask which slots are set; have service set this one.", {
  { "slot", "u8", 0, 255, about = "number of the slot" },
})
error_details(15, "not_provisioned", "The device has no key yet. Provision the device over a cable you trust.", {})
error_details(16, "already_provisioned", "The device has a key, and it is another one. Use the key the device was provisioned with, or have service set a new one.", {})
error_details(17, "bad_proof", "The proof does not fit the device key, or the key offered is no secret. Check that the key file belongs to this device.", {})
error_details(18, "not_supported", "This device cannot do that. Use a device, or a version, that can.", {})
error_details(19, "device_fault", "A fault stops the machine from doing this. Follow the fault's steps and clear it.", {
  { "fault", "u8", 0, 255, names = NAMES.Fault, about = "number of the Fault" },
})
error_details(20, "memory_failed", "Critical memory could not be written, so nothing was done. Take the device out of play and call service.", {})
error_details(21, "not_allowed", "The state would allow it, a rule does not; the reason says which. See the reason; nothing was done.", {
  { "reason", "u8", 0, 255, names = NAMES.Forbidden, about = "number of Forbidden" },
})
error_details(22, "keys_damaged", "The device had a key and no longer has it, or its critical memory cannot be used. Out of play. Service holds the contact in the logic compartment and provisions it.", {})
error_details(23, "provisioning_closed", "The keys were cleared at the contact, and the time to give one is over. Hold the contact in the logic compartment, then provision within 10 minutes.", {})
error_details(24, "busy", "Too many events wait for the owner's acknowledgement; nothing was done or stored. Acknowledge events, then send it again; the same number is allowed.", {
  { "free", "u16", 0, 65535, about = "how many more events the device can keep" },
})
error_details(25, "number_ahead", "The number is 0, is not of a query's or command's own range, or is too far ahead. Go on with the number after the newest.", {
  { "newest", "u32", 0, 4294967295, about = "highest command number of this host on record; 0 for a query" },
})
error_details(26, "reset_required", "The device belongs to a house, which has not signed for this reset. Have the house's office sign a reset statement for serial number and reset count.", {})
error_details(27, "certificate_refused", "The certificate, its proof or the list of revocations is not accepted. The reason says what is wrong; the house's office can sign a new certificate.", {
  { "reason", "u8", 0, 255, names = NAMES.CertificateReason, about = "a number of CertificateReason" },
})

-- What is not in the schema's tables
local bad = declare(ProtoField.string("sabot.bad", "Damaged frame"))
local malformed = declare(ProtoField.string("sabot.malformed", "Malformed"))
local crc_shown = declare(ProtoField.uint32("sabot.crc", "CRC-32", base.HEX))
local payload_shown = declare(ProtoField.bytes("sabot.payload", "Payload that cannot be read", base.COLON))
local extra_shown = declare(ProtoField.bytes("sabot.extra", "Bytes after the known fields", base.COLON))
local mac_shown = declare(ProtoField.bytes("sabot.mac", "MAC (not checked)", base.COLON))
local resolve_shown = declare(ProtoField.bool("sabot.resolve", "Only resolve, not execute", 8, nil, RESOLVE))
local status_shown = declare(ProtoField.uint8("sabot.status", "Status", base.DEC, NAMES.error))
local clock_shown = declare(ProtoField.uint8("sabot.event.clock", "clock", base.DEC, NAMES.ClockQuality))
local reason_shown = declare(ProtoField.uint8("sabot.gap.reason", "reason", base.DEC, NAMES.GapReason))
local size_shown = declare(ProtoField.uint32("sabot.gap.size", "events lost, 0 if not known"))
sabot.fields = declared

local bad_expert = ProtoExpert.new(
  "sabot.expert.bad", "Damaged frame", expert.group.CHECKSUM, expert.severity.ERROR)
local malformed_expert = ProtoExpert.new(
  "sabot.expert.malformed", "The schema does not allow this", expert.group.MALFORMED, expert.severity.ERROR)
local refused_expert = ProtoExpert.new(
  "sabot.expert.refused", "The device refused", expert.group.RESPONSE_CODE, expert.severity.NOTE)
local gap_expert = ProtoExpert.new(
  "sabot.expert.gap", "Events were lost", expert.group.SEQUENCE, expert.severity.WARN)
sabot.experts = { bad_expert, malformed_expert, refused_expert, gap_expert }

-- CRC-32 as binascii.crc32 has it. Wireshark brings the bit library with every version of Lua; its results
-- are signed, so each is brought back to 0..2^32-1.
local xor, floor = bit.bxor, math.floor
local CRC = {}
for byte = 0, 255 do
  local value = byte
  for _ = 1, 8 do
    local half = floor(value / 2)
    value = value % 2 == 1 and xor(half, 0xEDB88320) % 0x100000000 or half
  end
  CRC[byte] = value
end

local function crc32(data)
  local crc = 0xFFFFFFFF
  for at = 1, #data do
    crc = xor(floor(crc / 256), CRC[xor(crc, data:byte(at)) % 256]) % 0x100000000
  end
  return 0xFFFFFFFF - crc
end

-- A COBS block (without its delimiter) decoded; nil if a code points past its end.
local function decode(block)
  local parts, at = {}, 1
  while at <= #block do
    local code = block:byte(at)
    parts[#parts + 1] = block:sub(at + 1, at + code - 1)
    at = at + code
  end
  return at == #block + 1 and table.concat(parts, "\0") or nil
end

local function is_utf8(text)
  local at = 1
  while at <= #text do
    local first, second = text:byte(at, at + 1)
    local more, low, high
    if first <= 0x7F then more = 0
    elseif first >= 0xC2 and first <= 0xDF then more, low, high = 1, 0x80, 0xBF
    elseif first >= 0xE0 and first <= 0xEF then
      more, low, high = 2, first == 0xE0 and 0xA0 or 0x80, first == 0xED and 0x9F or 0xBF
    elseif first >= 0xF0 and first <= 0xF4 then
      more, low, high = 3, first == 0xF0 and 0x90 or 0x80, first == 0xF4 and 0x8F or 0xBF
    else return false end
    if more > 0 and not (second and second >= low and second <= high) then return false end
    for next = at + 2, at + more do
      local byte = text:byte(next)
      if not (byte and byte >= 0x80 and byte <= 0xBF) then return false end
    end
    at = at + more + 1
  end
  return true
end

local function hex(text)
  return (text:gsub(".", function(byte) return string.format("%02x", byte:byte()) end))
end

-- The beginning of a UTF-8 text: Wireshark itself would cut a long label in the middle of a letter.
local function shortened(text, most)
  if #text <= most then return text end
  while text:byte(most + 1) >= 0x80 and text:byte(most + 1) <= 0xBF do most = most - 1 end
  return text:sub(1, most) .. ".."
end

local function outside(value, low, high)
  if low and (value < low or value > high) then
    return string.format("%d is outside %d..%d", value, low, high)
  end
end

-- One integer: how Info says it, and why the schema does not allow it (nil if it does).
local function read_integer(field, value)
  if field.bits then
    local names, rest = {}, value
    for _, bit in ipairs(field.bits) do
      if floor(value / bit[2]) % 2 == 1 then
        names[#names + 1] = bit[1]
        rest = rest - bit[2]
      end
    end
    local wrong = field.type == "flags" and rest > 0 and string.format("unknown flag in 0x%x", value) or nil
    if rest > 0 or #names == 0 then names[#names + 1] = string.format("0x%x", rest) end
    return table.concat(names, "|"), wrong or outside(value, field.low, field.high)
  end
  local name = field.names and field.names[value]
  if field.type == "enum" and not name then
    return string.format("%d", value), string.format("%d is no %s", value, field.name)
  end
  return name or string.format("%d", value), outside(value, field.low, field.high)
end

local function show_integer(tree, field, type, range)
  local value = SIGNED[type] and range:le_int() or range:le_uint()
  local item = tree:add_le(field.shown, range)
  for index in ipairs(field.type ~= "array" and field.bits or {}) do item:add_le(field[index], range) end
  if field.name:find("utc_s$") and value > 0 then
    item:append_text(os.date("! (%Y-%m-%d %H:%M:%S UTC)", value))
  end
  return value, item
end

local function show_array(tree, field, range, count)
  local values, wrong = {}, nil
  for index = 1, count do
    local value, item = show_integer(
      tree, field, field.item, range:range((index - 1) * field.item_size, field.item_size))
    if field.names and field.names[index] then item:append_text(" (" .. field.names[index] .. ")") end
    wrong = wrong or outside(value, field.low, field.high)
    values[index] = string.format("%d", value)
  end
  return "[" .. table.concat(values, " ") .. "]", wrong
end

local function show_bytes(tree, field, range)
  local data = range:len() > 0 and range:raw() or ""
  if field.type == "text" then
    tree:add_packet_field(field.shown, range, ENC_UTF_8)
    if is_utf8(data) then return '"' .. data .. '"', nil end
    return hex(data), "not UTF-8"
  end
  tree:add(field.shown, range)
  return #data > 8 and hex(data:sub(1, 4)) .. ".." or hex(data), nil
end

-- Shows a record's fields from tvb[at..stop). Returns where they end, their words for Info, their
-- integers by name, and the first thing the schema does not allow (nil if it allows all).
local function show(tree, tvb, at, stop, fields)
  local words, values, wrong = {}, {}, nil
  for _, field in ipairs(fields) do
    local size, count = field.size, nil
    if not size then
      if at >= stop then return at, words, values, wrong or field.name .. ": its length byte is missing" end
      count = tvb:range(at, 1):uint()
      size, at = count * field.item_size, at + 1
    end
    if at + size > stop then
      wrong = wrong or string.format("%s: too short by %d bytes", field.name, at + size - stop)
      return at, words, values, wrong
    end
    local range, word, why = tvb:range(at, size), nil, nil
    if field.type == "array" then
      word, why = show_array(tree, field, range, count)
    elseif INTEGERS[field.type] then
      values[field.name] = show_integer(tree, field, field.type, range)
      word, why = read_integer(field, values[field.name])
    else
      word, why = show_bytes(tree, field, range)
    end
    if count and (count < field.least or count > field.most) then
      why = why or string.format("length %d is outside %d..%d", count, field.least, field.most)
    end
    wrong = wrong or why and field.name .. ": " .. why
    words[#words + 1] = field.name .. "=" .. word
    at = at + size
  end
  return at, words, values, wrong
end

local function complain(tree, range, why)
  tree:add(malformed, range, why):set_generated()
  tree:add_proto_expert_info(malformed_expert, why)
  return " [malformed: " .. why .. "]"
end

-- A body that is one record from beginning to end; returns its words for Info and its integers.
local function show_body(tree, tvb, at, stop, body)
  local range = tvb:range(at, stop - at)
  local branch = tree:add(range, body.name .. ": " .. body.about)
  local ended, words, values, wrong = show(branch, tvb, at, stop, body.fields)
  if not wrong and ended < stop then
    branch:add(extra_shown, tvb:range(ended, stop - ended))
    if not body.frozen then wrong = string.format("%d bytes too many", stop - ended) end
  end
  local said = #words > 0 and " " .. table.concat(words, " ") or ""
  if wrong then said = said .. complain(tree, range, body.name .. "." .. wrong) end
  return said, values
end

local function show_message(tree, tvb, at, stop, id, kinds)
  local found = MESSAGES[id]
  if not found then
    return string.format("0x%02x", id)
      .. complain(tree, tvb:range(at, stop - at), string.format("no message has the id 0x%02x", id))
  end
  if not kinds[found.kind] then
    return found.name .. complain(tree, tvb:range(at, stop - at), found.name .. " may not be sent so")
  end
  return found.name .. show_body(tree, tvb, at, stop, found)
end

-- Bodies that are not messages; their ends take longer ones of a later version.
local EVENT_ACK_BODY = {
  name = "event_ack", about = "Everything up to this event is on disk.", frozen = true,
  fields = EVENT_ACK_FIELDS,
}
local GAP_BODY = {
  name = "gap", about = "Events that are lost for good.", frozen = true, fields = GAP_FIELDS,
}
local REQUESTS = { query = true, command = true }
local SEALED = {}

SEALED[BARE] = function(tree, tvb, at, stop, header)
  return string.format("ACK %d sack=0x%04x", header.ack, header.sack)
end

SEALED[CLOSE] = function(tree, tvb, at, stop, header)
  return "CLOSE"
end

SEALED[REQUEST] = function(tree, tvb, at, stop, header)
  local resolve = header.flags % (2 * RESOLVE) >= RESOLVE
  tree:add(resolve_shown, tvb:range(HEADER.flags.at, 1))
  local said = string.format("REQUEST #%d%s ", header.request_id, resolve and " (resolve only)" or "")
  local found = MESSAGES[header.message]
  if resolve and at == stop and found then return said .. found.name end
  return said .. show_message(tree, tvb, at, stop, header.message, REQUESTS)
end

SEALED[ANSWER] = function(tree, tvb, at, stop, header)
  tree:add(status_shown, tvb:range(HEADER.flags.at, 1))
  local said = string.format("ANSWER #%d ", header.request_id)
  if header.flags == 0 then
    return said .. show_message(tree, tvb, at, stop, header.message, { answer = true })
  end
  local asked = MESSAGES[header.message]
  said = said .. (asked and asked.name or string.format("0x%02x", header.message)) .. " refused: "
  local found = ERRORS[header.flags]
  if not found then
    if stop > at then tree:add(extra_shown, tvb:range(at, stop - at)) end
    tree:add_proto_expert_info(refused_expert, string.format("error %d of a later version", header.flags))
    return said .. string.format("error %d", header.flags)
  end
  tree:add_proto_expert_info(refused_expert, found.name .. ": " .. found.about)
  return said .. found.name .. show_body(tree, tvb, at, stop, found)
end

SEALED[EVENT] = function(tree, tvb, at, stop, header)
  tree:add(clock_shown, tvb:range(HEADER.flags.at, 1))
  local branch = tree:add(tvb:range(at, stop - at), "event")
  local body, _, head, wrong = show(branch, tvb, at, stop, EVENT_HEADER)
  if wrong then return "EVENT" .. complain(tree, tvb:range(at, stop - at), "event." .. wrong) end
  return string.format("EVENT %d:%d ", head.boot_id, header.request_id)
    .. show_message(tree, tvb, body, stop, header.message, { event = true })
end

SEALED[EVENT_ACK] = function(tree, tvb, at, stop, header)
  local said, values = show_body(tree, tvb, at, stop, EVENT_ACK_BODY)
  if not values.boot_id then return "EVENT_ACK" .. said end
  return string.format("EVENT_ACK up to %d:%d", values.boot_id, header.request_id)
end

SEALED[GAP] = function(tree, tvb, at, stop, header)
  tree:add(reason_shown, tvb:range(HEADER.flags.at, 1))
  tree:add_le(size_shown, tvb:range(HEADER.request_id.at, 4))
  local said, values = show_body(tree, tvb, at, stop, GAP_BODY)
  if not values.to_n then return "GAP" .. said end
  local text = string.format(
    "%s: %s events lost between %d:%d and %d:%d",
    NAMES.GapReason[header.flags] or string.format("reason %d", header.flags),
    header.request_id > 0 and string.format("%d", header.request_id) or "unknown",
    values.from_boot, values.from_n, values.to_boot, values.to_n)
  tree:add_proto_expert_info(gap_expert, text)
  return "GAP " .. text
end

local function show_sealed(tree, tvb, stop)
  if stop < HEADER_SIZE + MAC_SIZE then
    return "SEALED" .. complain(tree, tvb:range(0, stop), "too short for a sealed packet")
  end
  local body_end = stop - MAC_SIZE
  local at, _, header = show(tree, tvb, 0, HEADER_SIZE, HEADER)
  local shown = SEALED[header.kind]
  local said
  if shown then
    said = shown(tree, tvb, at, body_end, header)
  else
    said = string.format("kind %d", header.kind)
      .. complain(tree, tvb:range(HEADER.kind.at, 1), string.format("no kind of packet is %d", header.kind))
  end
  tree:add(mac_shown, tvb:range(body_end, MAC_SIZE))
  return said
end

local function show_clear(tree, tvb, stop)
  tree:add(HEADER.direction.shown, tvb:range(0, 1))
  if stop < 2 then return "CLEAR" .. complain(tree, tvb:range(0, stop), "too short for a message") end
  tree:add(HEADER.message.shown, tvb:range(1, 1))
  return "CLEAR " .. show_message(tree, tvb, 2, stop, tvb:range(1, 1):uint(), { clear = true })
end

local function show_damage(tree, range, reason, detail)
  tree:add(bad, range, reason):set_generated()
  tree:add_proto_expert_info(bad_expert, reason .. ": " .. detail)
  return "BAD FRAME " .. reason
end

local function show_frame(tree, block, pinfo)
  local size = block:len()
  if size > MAX_BLOCK then
    return show_damage(tree, block, BAD_OVERRUN, string.format("%d bytes, at most %d", size, MAX_BLOCK))
  end
  local data = decode(block:raw())
  if not data then return show_damage(tree, block, BAD_ENCODING, "a COBS code points past the end") end
  if #data < CRC_SIZE + 1 then
    return show_damage(tree, block, BAD_LENGTH, string.format("%d bytes hold no payload", #data))
  end
  local tvb = ByteArray.new(data, true):tvb("Sabot payload")
  local stop = #data - CRC_SIZE
  local said = tvb:range(stop, CRC_SIZE):le_uint()
  local counted = crc32(data:sub(1, stop))
  if said ~= counted then
    tree:add(payload_shown, tvb:range(0, stop))
    tree:add_le(crc_shown, tvb:range(stop, CRC_SIZE))
    return show_damage(
      tree, block, BAD_CRC, string.format("the frame says 0x%08x, its bytes give 0x%08x", said, counted))
  end
  local direction = tvb:range(0, 1):uint()
  local to_device = direction == CLEAR_TO_DEVICE or direction == SEALED_TO_DEVICE
  if NAMES.direction[direction] then -- where the carrier has addresses, Wireshark shows those
    pinfo.cols.src = to_device and "host" or "device"
    pinfo.cols.dst = to_device and "device" or "host"
  end
  local text
  if direction == CLEAR_TO_DEVICE or direction == CLEAR_TO_HOST then
    text = show_clear(tree, tvb, stop)
  elseif direction == SEALED_TO_DEVICE or direction == SEALED_TO_HOST then
    text = show_sealed(tree, tvb, stop)
  else
    tree:add(HEADER.direction.shown, tvb:range(0, 1))
    text = string.format("0x%02x", direction)
      .. complain(tree, tvb:range(0, stop), string.format("no payload begins with 0x%02x", direction))
  end
  tree:add_le(crc_shown, tvb:range(stop, CRC_SIZE))
  return text
end

-- Every frame of the packet: one on USER0; on a stream (Decode As) as many as have their delimiter here.
function sabot.dissector(tvb, pinfo, tree)
  local raw, at, texts = tvb:raw(), 0, {}
  pinfo.cols.protocol = "Sabot"
  pinfo.cols.info = ""
  while at < #raw do
    local delimiter = raw:find("\0", at + 1, true)
    if not delimiter and pinfo.can_desegment > 0 and #raw - at <= MAX_BLOCK then
      pinfo.desegment_offset, pinfo.desegment_len = at, DESEGMENT_ONE_MORE_SEGMENT
      break
    end
    local stop = delimiter or #raw + 1
    if stop - 1 > at then
      local item = tree:add(sabot, tvb:range(at, math.min(stop, #raw) - at))
      local block = tvb:range(at, stop - 1 - at)
      local text
      if delimiter or block:len() > MAX_BLOCK then
        text = show_frame(item, block, pinfo)
      else
        text = show_damage(item, block, "unfinished", "no delimiter in this packet")
      end
      item:append_text(", " .. shortened(text, 160))
      texts[#texts + 1] = text
    end
    at = stop
  end
  pinfo.cols.info = table.concat(texts, " | ")
end

DissectorTable.get("wtap_encap"):add(wtap_encaps.USER0, sabot)
DissectorTable.get("tcp.port"):add_for_decode_as(sabot)
