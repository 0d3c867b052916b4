"""The emulated Pico at the end of an ordinary cable."""

from pathlib import Path
from random import Random

from sabot_protocol.codec import CODEC
from sabot_protocol.handshake import Question
from sabot_simulators.rp2040.pico import Pico, bootrom
from sabot_simulators.rp2040.served import PtyCable, TcpCable, serve
from sabot_simulators.rp2040.wiring import PinMachine, board_wiring


class Asking:
    """A host that asks what the device is, over and over, and keeps count of what it is told."""

    address = "here"

    def __init__(self) -> None:
        self.question = Question(CODEC, "identify", (), 0)
        self._ms = 0

    def exchange(self, data: bytes, wait_s: float) -> bytes:
        """Both ways, without waiting."""
        self.question.receive(data)
        self._ms += 5
        return self.question.poll(self._ms)


def test_it_answers_in_its_own_time(image: Path, tmp_path: Path) -> None:
    host = Asking()
    with Pico(image, board_wiring(), bootrom(tmp_path)) as pico:
        serve(pico, PinMachine(Random(1)), host, lambda: host.question.answer is None)
    assert host.question.answer is not None
    assert host.question.answer[9] == "Sabot on RP2040"


def test_cables_have_an_address_that_a_host_can_open() -> None:
    assert PtyCable().address.startswith("/dev/")
    cable = TcpCable(0)
    assert cable.address.startswith("socket://127.0.0.1:")
    assert cable.exchange(b"lost", 0) == b""
