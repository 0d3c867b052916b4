"""The command ledger: what makes a command happen exactly once.

A command is known by (host id, command number), whatever session it comes in. Before it is executed the
ledger writes BEGUN to critical memory, afterwards its answer. So of each of the last sixteen commands it
can say, also after a power cut: executed (with the answer), not executed, or interrupted half-way.
Of an older command only its host's newest number is left: it was decided, its answer is forgotten.

A host's commands are decided in the order of their numbers and leave the ledger in that order, so a number
that is missing between two that are there was never executed, and never will be.
"""

import struct

from sabot_protocol.record_store import COMMAND_SIZE, COMMAND_SLOTS, RecordStore

# What the ledger says of a command.
NEW = 0  # never seen: it may be executed
EXECUTED = 1  # decided; the answer is here
INTERRUPTED = 2  # begun, then the power failed: how far it got is unknown
FORGOTTEN = 3  # decided once, the answer is no longer kept
SKIPPED = 4  # a later one was decided and this one never was: it may not be executed any more

# Numbers that all hosts together may pass over in one boot, and how many more each second of it. A host that
# crashes passes over 1,024; a host that outlived the device's memory passes over all it ever used.
MAX_SKIPPED = 1 << 24
SKIPPED_EACH_S = 100

_BEGUN = 1
_ENDED = 2
_HEAD = "<8sIBBB"  # host id, number, state, status, message
_HEAD_SIZE = 15
MAX_ANSWER = COMMAND_SIZE - _HEAD_SIZE - 4
_HOSTS = 8
_SOMEBODY = bytes(8)  # stands for all hosts that had to be forgotten, with the highest of their numbers


class _Entry:
    def __init__(self, host_id: bytes, number: int) -> None:
        self.host_id = host_id
        self.number = number
        self.state = _BEGUN
        self.status = 0
        self.message = 0
        self.answer = b""


class Ledger:
    """The last commands and their answers, in critical memory."""

    def __init__(self, memory: RecordStore, records: "dict[str, bytes]") -> None:
        self._memory = memory
        self._entries: list[_Entry | None] = [None] * COMMAND_SLOTS
        self._next = 0
        self._hosts: list[tuple[bytes, int]] = []
        hosts = records.get("hosts", b"")
        for at in range(0, len(hosts), 12):
            self._hosts.append(struct.unpack_from("<8sI", hosts, at))
        newest = -1
        for slot in range(COMMAND_SLOTS):
            record = records.get("command.%d" % slot)
            if record:
                entry = _Entry(b"", 0)
                entry.host_id, entry.number, entry.state, entry.status, entry.message = struct.unpack_from(
                    _HEAD, record
                )
                order = struct.unpack_from("<I", record, len(record) - 4)[0]
                entry.answer = record[_HEAD_SIZE : len(record) - 4]
                self._entries[slot] = entry
                if order > newest:
                    newest = order
                    self._next = order + 1

    def state_of(self, host_id: bytes, number: int) -> int:
        """What the ledger says of a command: NEW, EXECUTED, INTERRUPTED, FORGOTTEN or SKIPPED."""
        entry = self._find(host_id, number)
        if entry is not None:
            return EXECUTED if entry.state == _ENDED else INTERRUPTED
        if number > self.newest(host_id):
            return NEW
        if self._next <= COMMAND_SLOTS:
            return SKIPPED  # nothing has left the ledger yet
        for entry in self._entries:
            if entry is not None and entry.host_id == host_id and entry.number < number:
                return SKIPPED
        return FORGOTTEN

    def answer(self, host_id: bytes, number: int) -> tuple[int, int, bytes]:
        """The stored (message, status, body) of an EXECUTED command."""
        entry = self._find(host_id, number)
        assert entry is not None
        return entry.message, entry.status, entry.answer

    def knows_host(self, host_id: bytes) -> bool:
        """Whether ``newest`` is the truth for this host: it is on record, or no host was ever forgotten."""
        return self._on_record(host_id) > 0 or self._on_record(_SOMEBODY) == 0

    def newest(self, host_id: bytes) -> int:
        """The highest number of this host's commands on record, 0 if there is none.

        For a host that may have been dropped it is the highest number of all dropped hosts. Commands of such
        a host up to that number are FORGOTTEN; it continues above.
        """
        return self._on_record(host_id) or self._on_record(_SOMEBODY)

    def _on_record(self, host_id: bytes) -> int:
        newest = 0
        for known, number in self._hosts:
            if known == host_id:
                newest = number
        for entry in self._entries:
            if entry is not None and entry.host_id == host_id and entry.number > newest:
                newest = entry.number
        return newest

    def begin(self, host_id: bytes, number: int) -> None:
        """Write that the command is about to be executed."""
        self._save(_Entry(host_id, number), self._next)
        self._next += 1

    def finish(self, host_id: bytes, number: int, message: int, status: int, answer: bytes) -> None:
        """Write the answer of a command: the one begun last, or one refused before it began."""
        entry = _Entry(host_id, number)
        entry.state = _ENDED
        entry.message = message
        entry.status = status
        entry.answer = answer
        if self._find(host_id, number) is not None:
            self._save(entry, self._next - 1)
        else:
            self._save(entry, self._next)
            self._next += 1

    def _save(self, entry: _Entry, order: int) -> None:
        slot = order % COMMAND_SLOTS
        leaving = self._entries[slot]
        if leaving is not None and leaving.host_id != entry.host_id:
            self._keep_host(leaving.host_id, self._on_record(leaving.host_id))
        head = struct.pack(_HEAD, entry.host_id, entry.number, entry.state, entry.status, entry.message)
        self._memory.save("command.%d" % slot, head + entry.answer + struct.pack("<I", order))
        self._entries[slot] = entry

    def _find(self, host_id: bytes, number: int) -> _Entry | None:
        for entry in self._entries:
            if entry is not None and entry.number == number and entry.host_id == host_id:
                return entry
        return None

    def _keep_host(self, host_id: bytes, newest: int) -> None:
        """Remember a host's newest number, whatever becomes of its records."""
        if (host_id, newest) in self._hosts:
            return
        forgotten = self._on_record(_SOMEBODY)
        hosts = [known for known in self._hosts if known[0] not in (host_id, _SOMEBODY)]
        hosts.append((host_id, newest))
        if len(hosts) > _HOSTS:
            forgotten = max(forgotten, hosts[0][1], self._on_record(hosts[0][0]))
        hosts = hosts[-_HOSTS:]
        if forgotten:
            hosts.insert(0, (_SOMEBODY, forgotten))
        self._memory.save("hosts", b"".join([struct.pack("<8sI", known, number) for known, number in hosts]))
        self._hosts = hosts
