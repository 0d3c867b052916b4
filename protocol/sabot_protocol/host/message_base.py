"""What every typed message has in common; the messages themselves are generated into ``messages``.

A typed message is a frozen value. Building one checks nothing; ``pack`` and ``unpack`` refuse what the
schema does not allow, with the same FieldError as ``codec``. Their code is compiled from the schema
(``packing``). It decides quickly about plain values; anything else is left to the codec, which takes it or
says what is wrong. The two cannot differ in what they say, and tests show that they do not differ in what
they take.
"""

from collections.abc import Sequence
from dataclasses import fields
from enum import EnumType, Flag
from typing import Any, ClassVar, Generic, Self, TypeVar, get_type_hints

from sabot_protocol import codec
from sabot_protocol.errors import FieldError
from sabot_protocol.host.packing import compile_methods


class MessageBody:
    """Fields that pack into bytes: a message, or the details of an error."""

    __slots__ = ()

    NAME: ClassVar[str]
    """The name the schema gives it."""

    @classmethod
    def _row(cls) -> codec.MessageCodec:
        raise NotImplementedError

    def pack(self) -> bytes:
        """The fields as bytes; FieldError names the first value not allowed."""
        self._compile()
        return self.pack()

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """The fields in ``data``; FieldError if it does not hold exactly these.

        A message that is the same in every version ignores bytes after its fields.
        """
        cls._compile()
        return cls.unpack(data)

    @classmethod
    def _compile(cls) -> None:
        """Give this class a ``pack`` and an ``unpack`` of its own, in place of the two above."""
        row = cls._row()
        enums = {hint.__name__: hint for hint in get_type_hints(cls).values() if isinstance(hint, EnumType)}
        compile_methods(cls, row.fields, row.frozen, enums)

    def _pack_by_codec(self) -> bytes:
        """For values that are not plain: a list, a bytearray, an enum's number; or for the error."""
        return self._row().pack(astuple(self))

    @classmethod
    def _refused(cls, data: bytes) -> FieldError:
        """Why ``data`` is refused."""
        try:
            cls._row().unpack(data)
        except FieldError as error:
            return error
        raise RuntimeError(
            f"{cls.__name__} does not fit the schema: run 'python -m sabot_protocol.generate'"
        )


class Message(MessageBody):
    """The base of every message."""

    __slots__ = ()

    ID: ClassVar[int]
    """The number that stands for it on the wire."""
    KIND: ClassVar[str]
    """``clear``, ``query``, ``command``, ``answer`` or ``event``."""
    FROZEN: ClassVar[bool]
    """Whether it is the same in every version, for ever."""

    @classmethod
    def _row(cls) -> codec.MessageCodec:
        return codec.CODEC.named(cls.NAME)


class Answer(Message):
    """What a request gets when it is not refused."""

    __slots__ = ()
    KIND = "answer"


class Event(Message):
    """What the device reports by itself."""

    __slots__ = ()
    KIND = "event"


class Clear(Message):
    """A datagram outside a session."""

    __slots__ = ()
    KIND = "clear"

    ANSWER: ClassVar[type[Message] | None] = None
    """The message that answers it, if one does."""


AnswerT = TypeVar("AnswerT", bound=Answer)
BodyT = TypeVar("BodyT", bound=MessageBody)


class Request(Message, Generic[AnswerT]):
    """What a host asks in a session; says by its type what it is answered with."""

    __slots__ = ()

    ANSWER: type[AnswerT]
    """The message that answers it."""
    ROLES: ClassVar[frozenset[int]]
    """Who may ask, as numbers of ``Role``."""


class Query(Request[AnswerT]):
    """A request that reads, or changes only the session; it may be carried out again."""

    __slots__ = ()
    KIND = "query"


class Command(Request[AnswerT]):
    """A request that is executed exactly once, however often it is sent."""

    __slots__ = ()
    KIND = "command"


class ErrorDetail(MessageBody):
    """Why a request was refused, with its details."""

    __slots__ = ()

    CODE: ClassVar[int]
    """The number that stands for it on the wire."""
    MEANING: ClassVar[str]
    """What happened."""
    REMEDY: ClassVar[str]
    """What to do about it."""

    @classmethod
    def _row(cls) -> codec.MessageCodec:
        return codec.CODEC.error_named(cls.NAME)


def from_values(message: type[BodyT], values: Sequence[Any]) -> BodyT:
    """A message from values as the codec has them: numbers become members of the field's enum or flag set.

    What is no member, or not even a number, is left as it is, for ``pack`` to refuse.
    """
    hints = get_type_hints(message)
    typed: list[Any] = []
    for field, value in zip(fields(message), values, strict=True):  # type: ignore[arg-type]
        hint = hints[field.name]
        number = isinstance(hint, EnumType) and type(value) is int
        if number and (value in hint._value2member_map_ or (issubclass(hint, Flag) and value >= 0)):
            value = hint(value)
        typed.append(tuple(value) if isinstance(value, list) else value)
    return message(*typed)


def astuple(body: MessageBody) -> tuple[Any, ...]:
    """The values of a message in the order of its fields, as the codec takes them."""
    return tuple([getattr(body, field.name) for field in fields(body)])  # type: ignore[arg-type]
