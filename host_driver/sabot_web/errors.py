"""Why a web service cannot listen, and why a request to it is refused."""

from sabot_driver.errors import SabotError


class NotServed(SabotError):
    """The service cannot listen as asked."""

    advice = "Choose another port or address."


class TlsRequired(NotServed):
    """An address that other computers reach needs TLS."""

    advice = "Give --certificate FILE and --private-key FILE, or listen on 127.0.0.1."


class ExtraMissing(SabotError):
    """The libraries of a service are not installed."""

    advice = "Install them: pip install 'sabot[serve]'."


class Refused(Exception):
    """A request that the service refuses. ``status`` is HTTP's; the text says why."""

    def __init__(self, status: int, reason: str, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.advice = advice
