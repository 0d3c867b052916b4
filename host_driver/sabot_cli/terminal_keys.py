"""Single key presses at a terminal, read with a time limit."""

import codecs
import os
import sys
import time
from types import TracebackType

QUIT_KEYS = ("q", "Q", "\x03", "\x1b")
ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left"}
NAMED_KEYS = {
    "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape",
    "\x03": "interrupt", "\x04": "end",
}  # fmt: skip
_POLL_S = 0.02  # how often Windows' console is asked


class KeyPresses:
    """Reads keys one by one while the context lasts; the terminal is then as it was.

    Ctrl-C raises KeyboardInterrupt as usual.
    """

    def __init__(self) -> None:
        self._saved: list[object] | None = None

    def __enter__(self) -> "KeyPresses":
        if os.name == "posix":
            import termios
            import tty

            self._saved = termios.tcgetattr(sys.stdin.fileno())
            tty.setcbreak(sys.stdin.fileno())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._saved is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]

    def read(self, timeout: float) -> str | None:
        """The next key; None if none was pressed in so many seconds. Arrows are ``left``, ``up`` …."""
        if os.name == "posix":
            return self._read_posix(timeout)
        return self._read_windows(timeout)

    def _read_posix(self, timeout: float) -> str | None:
        import select

        keyboard = sys.stdin.fileno()
        if not select.select([keyboard], [], [], timeout)[0]:
            return None
        pressed = os.read(keyboard, 16).decode(errors="replace")
        if not pressed:
            return "q"  # the terminal is gone
        return {"\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left"}.get(
            pressed, pressed[0]
        )

    def _read_windows(self, timeout: float) -> str | None:
        import msvcrt

        ends = time.monotonic() + timeout
        while not msvcrt.kbhit():  # type: ignore[attr-defined,unused-ignore]
            if time.monotonic() >= ends:
                return None
            time.sleep(_POLL_S)
        pressed: str = msvcrt.getwch()  # type: ignore[attr-defined,unused-ignore]
        if pressed in ("\x00", "\xe0"):
            arrow: str = msvcrt.getwch()  # type: ignore[attr-defined,unused-ignore]
            return {"H": "up", "P": "down", "M": "right", "K": "left"}.get(arrow, arrow)
        return pressed


class TypedKeys(KeyPresses):
    """Reads everything that is typed, key by key, Ctrl-C included: nothing that was pasted is lost.

    Names of keys: ``enter``, ``tab``, ``backspace``, ``escape``, ``interrupt`` (Ctrl-C), ``end`` (Ctrl-D, or
    the terminal is gone), arrows; any other key is its character.
    """

    def __init__(self) -> None:
        super().__init__()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._waiting = ""

    def __enter__(self) -> "TypedKeys":
        super().__enter__()
        if self._saved is not None:
            import termios

            keyboard = sys.stdin.fileno()
            mode = termios.tcgetattr(keyboard)
            mode[3] &= ~termios.ISIG  # Ctrl-C is a key: the program leaves in good order
            termios.tcsetattr(keyboard, termios.TCSADRAIN, mode)
        return self

    def read(self, timeout: float) -> str | None:
        """The next key; None if none was pressed in so many seconds."""
        if os.name != "posix":
            pressed = self._read_windows(timeout)
            return pressed if pressed is None else NAMED_KEYS.get(pressed, pressed)
        if not self._waiting and not self._fill(timeout):
            return None
        for arrow, name in ARROWS.items():
            if self._waiting.startswith(arrow):
                self._waiting = self._waiting[len(arrow) :]
                return name
        key, self._waiting = self._waiting[0], self._waiting[1:]
        return NAMED_KEYS.get(key, key)

    def _fill(self, timeout: float) -> bool:
        import select

        keyboard = sys.stdin.fileno()
        if not select.select([keyboard], [], [], timeout)[0]:
            return False
        try:
            read = os.read(keyboard, 1024)
        except OSError:
            read = b""  # the terminal is gone
        self._waiting = self._decoder.decode(read) if read else "\x04"
        return bool(self._waiting)


def at_terminal() -> bool:
    """Whether a person can press keys and see the screen."""
    return sys.stdin.isatty() and sys.stdout.isatty()
