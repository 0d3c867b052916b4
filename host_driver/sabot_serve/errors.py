"""What can keep a table's service from running, and why a request to it is refused."""

from sabot_driver.errors import SabotError


class ServiceRunning(SabotError, BlockingIOError):
    """Another process serves this table."""

    advice = "Use that service, or end it first."


class ServiceFileFailed(SabotError, OSError):
    """The files by which programs find a table's service cannot be used."""

    advice = "Check the disk and the rights of the folder."


class NotServed(SabotError):
    """The service cannot listen as asked."""

    advice = "Choose another port or address."


class TlsRequired(NotServed):
    """An address that other computers reach needs TLS."""

    advice = "Give --certificate FILE and --private-key FILE, or listen on 127.0.0.1."


class Refused(Exception):
    """A request that the service refuses. ``status`` is HTTP's; the text says why."""

    def __init__(self, status: int, reason: str, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.advice = advice
