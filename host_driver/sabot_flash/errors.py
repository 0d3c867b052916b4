"""What can go wrong when a board is flashed, as types."""

from sabot_driver.errors import NoDevice, SabotError, WrongDevice


class FlashError(SabotError):
    """The board was not flashed; at its next start it runs what it ran before."""


class MpremoteMissing(FlashError, ImportError):
    """The package that speaks to MicroPython's prompt is not installed."""

    advice = "Install it: pip install 'sabot[flash]'."


class NoApplication(FlashError, FileNotFoundError):
    """There is nothing to flash at the place that was named."""

    advice = "Build it with 'make firmware', or name the file: --image FILE."

    def __str__(self) -> str:
        return str(self.args[0])


class BadImage(FlashError, ValueError):
    """The image is damaged, incomplete or not for this board."""

    advice = "Build it again with 'make firmware', or fetch it again."


class WrongBoard(FlashError, WrongDevice):
    """Something is there, but not a board that this application is for."""

    advice = "The application is for a Raspberry Pi Pico (RP2040) with MicroPython 1.25 or newer."


class BoardBusy(FlashError, BlockingIOError):
    """A round is open, or the device holds cards whose count a restart would leave unproved."""

    advice = "Let the round end and take all cards out ('empty_machine'), then flash."

    def __str__(self) -> str:
        return str(self.args[0])


class NoRoom(FlashError):
    """The application is larger than a slot."""

    advice = "Make it smaller, or the slots larger: firmware/sabot_image_build/development/sabot_slots.py."


class NotWritten(FlashError):
    """A command to the board failed, or it holds other bytes than were written."""

    advice = "Flash again. If it happens again, the board's flash or its cable is at fault."


class NoPrompt(FlashError, NoDevice):
    """Neither a Sabot device nor MicroPython's prompt answers on the port."""

    advice = (
        "Hold BOOTSEL while plugging the board in, and flash an image: 'sabot flash --uf2 FILE'. "
        "On a production image there is no prompt."
    )


class NoDrive(FlashError, NoDevice):
    """No drive of the boot loader is to be seen."""

    advice = "Hold BOOTSEL while plugging the board in; if its drive is not mounted by itself, mount it."


class NotBack(FlashError, NoDevice):
    """The board was flashed and started, but has not answered since."""

    advice = "See 'sabot devices'; hold BOOTSEL while plugging it in to flash it by its drive."
