"""The Wireshark dissector, written out from the schema as one Lua script.

``render()`` gives the whole script; it is checked in as ``protocol/wireshark/sabot.lua``. The script has two
halves: tables made here from the schema and the constants of frame, session and link, and the fixed Lua code
below that reads frames by those tables. It runs in every Wireshark with Lua 5.2 to 5.4.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sabot_protocol import frame, meanings, schema, wire_constants
from sabot_protocol.wire_constants import EVENT_HEADER, RESOLVE

Row = tuple[Any, ...]  # a field of the schema: (name, type, ...)

# Numbers that are plain integers on the wire but are read with an enum's, a flag set's or another table's
# names: frozen messages and error details hold no enums, so that any two versions can read them.
READ_AS = {
    ("identity", "flags"): "IdentityFlag",
    ("challenge", "flags"): "IdentityFlag",
    ("refused", "error"): "error",
    ("status_report", "clock"): "ClockQuality",
    ("status_report", "shuffler"): "ShufflerState",
    ("status_report", "shoe"): "ShoeState",
    ("status_report", "fault"): "Fault",
    ("status_report", "flags"): "StatusFlag",
    ("hello", "slot"): "KeySlot",
    ("attach", "mode"): "AttachMode",
    ("attached", "mode"): "AttachMode",
    ("elevate", "request"): "message",
    ("elevated", "role"): "Role",
    ("set_key", "slot"): "KeySlot",
    ("set_key", "role"): "Role",
    ("key_slots_are", "roles"): "Role",
    ("elevation_used", "request"): "message",
    ("certificate_used", "request"): "message",
    ("error.certificate_refused", "reason"): "CertificateReason",
    ("component", "component"): "Component",
    ("component_is", "component"): "Component",
    ("counters_are", "values"): "counter",
    ("error.unknown_message", "message"): "message",
    ("error.wrong_role", "role"): "Role",
    ("error.device_fault", "fault"): "Fault",
    ("error.wrong_state", "half"): "Half",
    ("error.not_allowed", "reason"): "Forbidden",
    ("decks_are", "backs"): "Back",
    ("last_round_is", "verdict"): "Verdict",
    ("last_round_is", "void"): "VoidReason",
    ("", "direction"): "direction",
    ("", "kind"): "kind",
    ("", "message"): "message",
}

_DIRECTIONS = (
    (wire_constants.CLEAR_TO_DEVICE, "clear to device"),
    (wire_constants.CLEAR_TO_HOST, "clear to host"),
    (wire_constants.SEALED_TO_DEVICE, "sealed to device"),
    (wire_constants.SEALED_TO_HOST, "sealed to host"),
)
_KINDS = ("BARE", "REQUEST", "ANSWER", "EVENT", "EVENT_ACK", "GAP", "CLOSE")
_INTEGERS = {"B": "u8", "H": "u16", "I": "u32"}
_HEADER = ("direction", "session", "counter", "seq", "ack", "sack", "kind", "message", "flags", "request_id")


def render() -> str:
    """The dissector for this schema."""
    flag_sets = {name for name, _ in schema.FLAGS}
    parts = [_HEAD, "-- Constants", *_constants(), "", "-- Names of numbers"]
    parts += [_names("direction", _DIRECTIONS)]
    parts += [_names("kind", [(getattr(wire_constants, name), name.lower()) for name in _KINDS])]
    parts += [_names("message", [(0, "none"), *((row[0], row[1]) for row in schema.MESSAGES)])]
    parts += [_names("error", [(0, "ok"), *((row[0], row[1]) for row in schema.ERRORS)])]
    parts += [_names("counter", list(enumerate(schema.COUNTERS, 1)))]
    for name, members in schema.ENUMS:
        parts.append(_names(name, [(number, member) for member, number in members]))
    parts += ["", "-- Flags, lowest bit first"]
    for name, members in schema.FLAGS:
        parts.append("FLAGS.%s = {" % name)
        for member, bit in members:
            about = meanings.FLAG_MEMBERS[name + "." + member]
            parts.append('  { "%s", 0x%04x, about = %s },' % (member, bit, _quoted(about)))
        parts.append("}")
    parts += [_DECLARE, "-- Every record of the wire: a field is { name, type, limits }"]
    for variable, prefix, rows in (
        ("HEADER", "", _rows(wire_constants.HEADER, _HEADER)),
        ("EVENT_HEADER", "event", _rows(EVENT_HEADER, ("boot_id", "ticks_ms", "utc_s", "utc_ms"))),
        ("EVENT_ACK_FIELDS", "event_ack", _rows("<I", ("boot_id",))),
        ("GAP_FIELDS", "gap", _rows("<IIII", ("from_boot", "from_n", "to_boot", "to_n"))),
    ):
        parts.append('local %s = record("%s", %s)' % (variable, prefix, _fields(prefix, rows, flag_sets)))
    parts.append("")
    for id, name, kind, _, _, rows in schema.MESSAGES:
        about = _quoted(meanings.MESSAGES[name])
        fields = _fields(name, rows, flag_sets)
        parts.append('message(0x%02x, "%s", "%s", %s, %s)' % (id, name, kind, about, fields))
    parts.append("")
    for code, name, rows in schema.ERRORS:
        about = _quoted(meanings.ERRORS[name] + " " + meanings.REMEDIES[name])
        fields = _fields("error." + name, rows, flag_sets)
        parts.append('error_details(%d, "%s", %s, %s)' % (code, name, about, fields))
    return "\n".join(parts) + "\n" + _DISSECT


def _constants() -> Iterable[str]:
    values = {
        "MAX_BLOCK": frame.MAX_BLOCK,
        "CRC_SIZE": frame.CRC_SIZE,
        "HEADER_SIZE": wire_constants.HEADER_SIZE,
        "MAC_SIZE": wire_constants.MAC_SIZE,
        "FROZEN_BELOW": schema.FROZEN_BELOW,
        "RESOLVE": RESOLVE,
        "SEALED_TO_DEVICE": wire_constants.SEALED_TO_DEVICE,
        "SEALED_TO_HOST": wire_constants.SEALED_TO_HOST,
        "CLEAR_TO_DEVICE": wire_constants.CLEAR_TO_DEVICE,
        "CLEAR_TO_HOST": wire_constants.CLEAR_TO_HOST,
    }
    values.update((name, getattr(wire_constants, name)) for name in _KINDS)
    for name, reason in (
        ("BAD_CRC", frame.BAD_CRC),
        ("BAD_LENGTH", frame.BAD_LENGTH),
        ("BAD_OVERRUN", frame.BAD_OVERRUN),
        ("BAD_ENCODING", frame.BAD_ENCODING),
    ):
        yield 'local %s = "%s"' % (name, reason)
    for name, value in values.items():
        yield "local %s = %d" % (name, value)


def _names(table: str, members: Sequence[tuple[int, str]]) -> str:
    rows = ["[%d] = %s," % (number, _quoted(name)) for number, name in members]
    return "NAMES.%s = {\n%s\n}" % (table, _wrapped(rows))


def _rows(format: str, names: Sequence[str]) -> tuple[Row, ...]:
    """A struct format's integers as rows of the schema."""
    codes = format.lstrip("<")
    sizes = {"u8": 0xFF, "u16": 0xFFFF, "u32": 0xFFFFFFFF}
    types = [_INTEGERS[code] for code in codes]
    return tuple((name, type, 0, sizes[type]) for name, type in zip(names, types, strict=True))


def _fields(prefix: str, rows: Iterable[Row], flag_sets: set[str]) -> str:
    """A record's fields as a Lua table."""
    lines = []
    for row in rows:
        name, type = row[0], row[1]
        read_as = row[2] if type in ("enum", "flags") else READ_AS.get((prefix, name))
        limits = () if type in ("enum", "flags") else row[2:]
        cells = [_quoted(name), _quoted(type)]
        cells += [_quoted(limit) if isinstance(limit, str) else str(limit) for limit in limits]
        if read_as is not None:
            cells.append(("bits = FLAGS.%s" if read_as in flag_sets else "names = NAMES.%s") % read_as)
        about = _about(prefix, name)
        if about:
            cells.append("about = " + _quoted(about))
        lines.append("  { %s }," % ", ".join(cells))
    return "{\n%s\n}" % "\n".join(lines) if lines else "{}"


def _about(prefix: str, name: str) -> str:
    """What a field means, with its unit; empty for the fields of headers, whose names say it."""
    owner, is_error = prefix.removeprefix("error."), prefix.startswith("error.")
    key = owner + "." + name
    about = (meanings.DETAILS if is_error else meanings.FIELDS).get(key, "")
    unit = meanings.UNITS.get(key)
    return about if unit is None else "%s (%s)" % (about, unit)


def _wrapped(cells: Iterable[str]) -> str:
    """Cells in lines of a readable length."""
    lines = [" "]
    for cell in cells:
        if len(lines[-1]) + len(cell) > 100:
            lines.append(" ")
        lines[-1] += " " + cell
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A Lua string."""
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


_HEAD = """\
-- Sabot's wire for Wireshark: one frame a packet on link type USER0 (147), as sent, with its delimiter.
--
-- Generated from the schema by sabot_protocol.generate.wireshark: do not edit.
-- It shows frames and says what is wrong with them; it cannot check a MAC, because it has no key.

local sabot = Proto("sabot", "Sabot shuffler and dealing shoe")
local NAMES, FLAGS = {}, {}
"""

_DECLARE = """
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
"""

_DISSECT = r"""
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
"""
