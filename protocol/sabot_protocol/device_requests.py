"""Requests of one session, at the device: checked against the schema, executed, answered.

Version, owner, role and values are checked before the device's executor sees a request. A command goes
through the ledger, so a repeated one is answered from there and not executed again.
"""

from sabot_protocol import ledger
from sabot_protocol.codec import MessageCodec, enum_number
from sabot_protocol.device_credentials import KEY_REQUESTS, SERVICE, TABLE, Credentials
from sabot_protocol.device_protocol import NO_SLOT, OBSERVER, UNKNOWN_TIME, Caller
from sabot_protocol.errors import AnsweredLater, FieldError, MemoryFailed, Refusal
from sabot_protocol.schema import CLOCK_KNOWN_FLAG, HIDDEN, OWNED_FLAG
from sabot_protocol.wire_constants import DEVICE, LAST_COMMAND, MAX_AHEAD, RESOLVE

FLOOR = enum_number("Role", "floor")
OWNER_MODE = enum_number("AttachMode", "owner")
SESSION_REQUESTS = ("status", "attach", "detach", "set_clock", "counters", "trace", "checkpoint")
"""The requests that ``RequestHandler`` executes, by the name of its methods."""
CERTIFICATE_REQUESTS = ("certificate", "revocations")
"""The requests that ``CertificateDesk`` executes, by the name of its methods."""
WITH_SECRET = tuple([name for name, _ in HIDDEN])  # their last value is hidden by a pad of the session
KEEP_SLOTS_OPEN = ("set_key", "remove_key", "set_clock")  # any other command ends provisioning
TRACE_PAGE = 10
# What is executed although few places are left for events: it ends something, or lets an owner read
NEVER_BUSY = ("void_round", "stop", "mark_out_of_order", "clear_fault", "evict_owner")
QUERIES_THAT_REPORT = ("faces", "checkpoint", "chain_key", "house_key", "revocations")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sabot_protocol.codec import Values
    from sabot_protocol.device_port import DevicePort


class RequestHandler:
    """Executes the requests of the session on one cable."""

    def __init__(self, port: "DevicePort", credentials: Credentials) -> None:
        self._port = port
        self._device = port.device
        self._credentials = credentials
        self.busy_up_to = 0  # the highest command refused for now in this session; 0 if none waits
        self.busy_from = 0  # the lowest
        self.current = 0  # the query that is being carried out
        self._busy_query = 0  # the newest query, if it was refused for now
        self._busy_code = port.device.codec.error_named("busy").id

    def request(self, id: int, flags: int, request_id: int, body: bytes | memoryview) -> None:
        """Answer a request: from the ledger, by a refusal, or by executing it."""
        message = self._device.codec.find(id)
        if self._port.ending:
            return  # the host asks again in its next session
        if message is None or message.kind not in ("query", "command"):
            self._refuse_request(request_id, id, Refusal("unknown_message", (id,)))
        elif message.kind == "query":
            if request_id <= LAST_COMMAND:  # an elevation of a query must not count as one of a command
                self._refuse_request(request_id, id, Refusal("number_ahead", (0,)))
                return
            self.current = request_id
            try:
                answer, outcome = self._decide(message, request_id, body)
            except AnsweredLater:
                return
            self._busy_query = request_id if outcome[0] == self._busy_code else 0
            self._answer(request_id, answer, outcome)
        else:
            self._command(message, flags, request_id, body)

    def _command(self, message: MessageCodec, flags: int, request_id: int, body: bytes | memoryview) -> None:
        """Execute a command once; whatever was decided of it is in the ledger before it is answered."""
        device = self._device
        own_ledger = device.ledger
        if not self._port.owns():
            self._refuse_request(request_id, message.id, Refusal("not_owner", (device.owner_id(),)))
            return
        newest = own_ledger.newest(self._port.host_id)
        skipped = max(request_id - newest - 1, 0)
        ahead = skipped >= MAX_AHEAD or not device.may_skip(skipped)
        if request_id == 0 or request_id > LAST_COMMAND or ahead:
            self._refuse_request(request_id, message.id, Refusal("number_ahead", (newest,)))
            return
        found = own_ledger.state_of(self._port.host_id, request_id)
        if found == ledger.EXECUTED:
            self._port.diagnostics.repeats += 1
            answer, status, details = own_ledger.answer(self._port.host_id, request_id)
            self._answer(request_id, answer, (status, details))
            return
        if found == ledger.INTERRUPTED:
            self._refuse_request(request_id, message.id, Refusal("interrupted"))
            return
        if found == ledger.FORGOTTEN:
            self._refuse_request(request_id, message.id, Refusal("forgotten"))
            return
        if found == ledger.SKIPPED:
            self._refuse_request(request_id, message.id, Refusal("not_executed"))
            return
        if not flags & RESOLVE and message.name not in NEVER_BUSY and self._is_busy(request_id):
            self._refuse_request(request_id, message.id, Refusal("busy", (device.events.free(),)))
            return  # undecided: the same number may be sent again
        device.skipped += skipped
        if flags & RESOLVE:  # from now on it is decided: it will never be executed
            answer, outcome = message.id, self._details(Refusal("not_executed"))
        else:
            answer, outcome = self._decide(message, request_id, body)
        try:
            own_ledger.finish(self._port.host_id, request_id, answer, outcome[0], outcome[1])
        except MemoryFailed:
            begun = own_ledger.state_of(self._port.host_id, request_id) == ledger.INTERRUPTED
            answer = message.id
            outcome = self._details(Refusal("interrupted" if begun else "memory_failed"))
        self._answer(request_id, answer, outcome)

    def _is_busy(self, request_id: int) -> bool:
        """Whether a command must wait: for the owner to acknowledge events, or behind others that waited.

        Those that were refused come again in their order. What was on its way behind them, and never was
        refused, would be executed before them, and they could never be.
        """
        if self._device.events.is_nearly_full() or 0 < self.busy_up_to < request_id:
            if not self.busy_up_to or request_id < self.busy_from:
                self.busy_from = request_id
            self.busy_up_to = max(self.busy_up_to, request_id)
            self._credentials.drop_grant()  # it is authorised anew when it comes again
            return True
        if request_id == self.busy_up_to:
            self.busy_up_to = 0
        return False

    def _decide(
        self, message: MessageCodec, request_id: int, body: bytes | memoryview
    ) -> "tuple[int, tuple[int, bytes]]":
        """Check a request and carry it out: the answer's id, status and body."""
        device = self._device
        try:
            values = self._check(message, request_id, body)
            slot, role, person = self._credentials.by
            reports = message.name in QUERIES_THAT_REPORT or (slot == NO_SLOT and message.kind == "query")
            if reports and device.events.is_nearly_full():
                raise Refusal("busy", (device.events.free(),))
            if message.kind == "command":
                device.ledger.begin(self._port.host_id, request_id)
                if message.name not in KEEP_SLOTS_OPEN:
                    device.keys.open = False
                if role and slot != NO_SLOT:
                    host_id = self._port.host_id
                    device.emit("elevation_used", host_id, slot, role, person, message.id, request_id)
            if slot == NO_SLOT:
                self._credentials.open_desk().tell(message.id, request_id, role)
            answer = device.codec.named(message.answer)
            return answer.id, (0, answer.pack(self._carry_out(message, values, request_id)))
        except AnsweredLater:
            raise
        except Refusal as refusal:
            return message.id, self._details(refusal)
        except MemoryFailed:
            return message.id, self._details(Refusal("memory_failed"))
        except Exception as error:
            # A query changes nothing: its failure must not restart the device, or who may ask could stop it.
            # A command that failed half-way has left the machine in an unknown state: the restart finds out.
            if message.kind == "query":
                return message.id, self._details(Refusal("device_fault", (0,)))
            if isinstance(error, FieldError):  # executed; only its answer could not be packed
                return message.id, self._details(Refusal("interrupted"))
            raise

    def _check(self, message: MessageCodec, request_id: int, body: bytes | memoryview) -> "Values":
        """The request's values, if version, role and schema allow it."""
        self._credentials.by = self._credentials.use(message, request_id, body)
        if self._port.limited and not message.frozen:
            raise Refusal("version_mismatch", self._device.codec.version)
        may = 1 << self._credentials.role()
        if self._port.owns():
            may |= 1 << TABLE  # an elevation adds to what the owner may do
        if not message.roles & may:
            raise Refusal("wrong_role", (self._credentials.role(),))
        try:
            return message.unpack(body)
        except FieldError as error:
            raise Refusal("bad_field", (error.index,)) from None

    def comes_again(self, request_id: int) -> bool:
        """Whether this request was refused for now in this session, so that it is sent again."""
        waits = self.busy_up_to > 0 and self.busy_from <= request_id <= self.busy_up_to
        return waits or (request_id > 0 and request_id == self._busy_query)

    def answer_later(
        self, name: str, request_id: int, refusal: "Refusal | None", values: "Values" = ()
    ) -> None:
        """Answer a query that raised AnsweredLater, or refuse it. Its session must still run."""
        message = self._device.codec.named(name)
        if refusal is not None:
            if refusal.error == "busy":
                self._busy_query = request_id
            self._refuse_request(request_id, message.id, refusal)
        else:
            answer = self._device.codec.named(message.answer)
            self._answer(request_id, answer.id, (0, answer.pack(values)))

    def _refuse_request(self, request_id: int, message: int, refusal: Refusal) -> None:
        self._answer(request_id, message, self._details(refusal))

    def _answer(self, request_id: int, message: int, outcome: "tuple[int, bytes]") -> None:
        self._port.answers.append((message, outcome[0], request_id, outcome[1]))

    def _details(self, refusal: Refusal) -> "tuple[int, bytes]":
        error = self._device.codec.error_named(refusal.error)
        return error.id, error.pack(refusal.values)

    def _carry_out(self, message: MessageCodec, values: "Values", request_id: int) -> "Values":
        """Execute a checked request: here, in ``Credentials``, or in the device's executor."""
        name = message.name
        answer: Values
        if name in WITH_SECRET:
            assert self._port.link is not None
            values = values[:-1] + (self._port.link.session.hide(message.id, request_id, values[-1]),)
        if name in SESSION_REQUESTS:
            answer = getattr(self, name)(*values)
        elif name in CERTIFICATE_REQUESTS:
            answer = getattr(self._credentials.open_desk(), name)(*values)
        elif name in KEY_REQUESTS:
            answer = getattr(self._credentials, name)(*values)
        else:
            credentials, port = self._credentials, self._port
            caller = Caller(port.host_id, credentials.role(), port.owns(), credentials.by[2])
            answer = self._device.executor.execute(name, values, caller)
        if message.answer in WITH_SECRET:
            assert self._port.link is not None
            id = self._device.codec.named(message.answer).id
            answer = answer[:-1] + (self._port.link.session.hide(id, request_id, answer[-1]),)
        return answer

    # -- requests that the wire itself answers --------------------------------------------------

    def status(self) -> "Values":
        """Uptime, time of day and its quality, states of both halves, fault, flags, round and stack."""
        device = self._device
        shuffler, shoe, fault, flags, round_id, stack = device.executor.status()
        seconds, _, quality = device.utc()
        if device.owner is not None:
            flags |= OWNED_FLAG
        if quality != UNKNOWN_TIME:
            flags |= CLOCK_KNOWN_FLAG
        return device.uptime_s(), seconds, quality, shuffler, shoe, fault, flags, round_id, stack

    def attach(self, mode: int, boot_id: int, n: int) -> "Values":
        """Attach the session as owner or observer; events follow from the one after boot id and number."""
        device = self._device
        if boot_id > device.boot_id:
            raise Refusal("bad_field", (1,))  # a boot that has not been
        if boot_id == device.boot_id and n > device.events.last:
            raise Refusal("bad_field", (2,))  # an event that has not been
        if mode == OWNER_MODE:
            if self._port.slot != DEVICE:
                raise Refusal("wrong_role", (OBSERVER,))
            holder = device.owner
            if holder is not None and holder is not self._port and holder.host_id != self._port.host_id:
                raise Refusal("owner_held", (holder.host_id,))
            device.set_owner(self._port)
            device.note_host_run(self._port.host_id, self._port.host_run)
        elif device.owner is self._port:
            self._port.detach()
        self._port.attached = True
        self._port.position = (boot_id, n)
        known, newest = 0, 0
        if mode == OWNER_MODE:
            known, newest = (
                1 if device.ledger.knows_host(self._port.host_id) else 0,
                device.ledger.newest(self._port.host_id),
            )
        return mode, known, newest, device.owner_id()

    def detach(self) -> "Values":
        """End the attachment; an owner gives the device up."""
        self._port.detach()
        return ()

    def set_clock(self, utc_s: int, utc_ms: int) -> "Values":
        """Set the time of day; a leap needs floor or service."""
        authorised = self._credentials.by[1] in (FLOOR, SERVICE)
        if not authorised and self._device.is_leap(utc_s):
            raise Refusal("wrong_role", (self._credentials.role(),))
        self._device.set_clock(utc_s, utc_ms, authorised)
        return ()

    def checkpoint(self) -> "Values":
        """The newest checkpoint of the event chain."""
        return (self._device.newest_checkpoint(),)

    def counters(self) -> "Values":
        """The counters of this cable."""
        return (self._port.diagnostics.counters(),)

    def trace(self, first: int) -> "Values":
        """How many headers are kept, and a page of them."""
        diagnostics = self._port.diagnostics
        return diagnostics.header_count(), diagnostics.headers(first, TRACE_PAGE)
