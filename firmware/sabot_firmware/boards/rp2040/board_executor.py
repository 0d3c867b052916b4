"""The board's executor: components and boot loader, ahead of the controller's commands."""

import sys

import sabot_protocol
from sabot_firmware.refusals import forbidden
from sabot_protocol.device_protocol import Caller, Executor
from sabot_protocol.errors import Refusal
from sabot_protocol.modes import check_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sabot_firmware.boards.rp2040.running_image import RunningImage
    from sabot_protocol.codec import Values


BOARD_COMMANDS = ("component", "start_loader")
"""The commands that ``BoardExecutor`` executes, by the name of its methods."""
PACKAGE = "sabot_protocol"
SIGNATURE_MODULES = ("ed25519", "house_lines")


def _nothing(_: bool) -> None:
    """Called instead of ``hold`` where there are no edges."""


class BoardExecutor(Executor):
    """Executes ``BOARD_COMMANDS`` itself, and passes other commands to the controller.

    It exists before the controller and without one, so that a device that gave up can still be identified and
    updated.
    """

    def __init__(self) -> None:
        self.controller: Executor = Executor()
        self.hold: Callable[[bool], None] = _nothing
        """Called before and after a command, so that no edge changes the controller meanwhile."""
        self.image: RunningImage | None = None  # from the first question about a component on
        self.leaving = False  # the loader is to be started

    def status(self) -> "tuple[int, int, int, int, int, int]":
        """The controller's status."""
        return self.controller.status()

    def on_grid(self) -> bool:
        """Whether the controller wants bytes only at the ticks of the grid."""
        return self.controller.on_grid()

    def idle(self) -> bool:
        """Whether the controller moves nothing."""
        return self.controller.idle()

    def forget_numbers(self) -> None:
        """Let the numbers of rounds and decks begin anew."""
        self.hold(True)
        try:
            self.controller.forget_numbers()
        finally:
            self.hold(False)

    def take_entropy(self, entropy: bytes) -> None:
        """Mix the host's bytes into the generator."""
        self.controller.take_entropy(entropy)

    def draw_key(self) -> bytes:
        """Secret bytes of the controller's generator."""
        return self.controller.draw_key()

    def execute(self, name: str, values: "Values", caller: Caller) -> "Values":
        """Execute a command here or in the controller; Refusal if it may not be executed now."""
        if name in BOARD_COMMANDS:
            answer: Values = getattr(self, name)(*values)
            return answer
        self.hold(True)
        try:
            return self.controller.execute(name, values, caller)
        finally:
            self.hold(False)

    def component(self, number: int) -> "Values":
        """Hash and version of one component of the image."""
        if self.image is None:
            from sabot_firmware.boards.rp2040.running_image import RunningImage

            self.image = RunningImage()
        if not self.image.ready():
            raise Refusal("busy", (0,))
        found = self.image.component(number)
        if found is None:
            raise Refusal("not_supported")
        return (number,) + found

    def signatures_checked(self) -> None:
        """Forget the modules that only signatures need; they are loaded anew for the next one."""
        for name in SIGNATURE_MODULES:
            sys.modules.pop(PACKAGE + "." + name, None)
            setattr(sabot_protocol, name, None)  # the package refers to it too

    def start_loader(self) -> "Values":
        """Leave the program for the boot loader; only an idle and empty machine may."""
        state = self.controller.status()
        check_command("start_loader", state[0], state[1])
        if not self.controller.idle_and_empty():
            raise forbidden("not_cleared")
        self.leaving = True
        return ()
