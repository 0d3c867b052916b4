"""Simulated people at an emulated machine of another process: they see its cards over the control socket."""

import socket
from pathlib import Path

ANSWER_S = 60.0


class CardsOverSocket:
    """What people see and do at a machine, asked over ``sabot simulate --control PATH``."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_S)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rwb")

    def close(self) -> None:
        """Leave the machine."""
        self._lines.close()
        self._socket.close()

    def __call__(self, round_id: int) -> list[list[str]]:
        """The cards of each stack or draw of a round; of round 0 those that were burnt."""
        ok, *stacks = self.ask(f"cards {round_id}").split()
        if ok != "ok":
            raise ValueError(f"the control socket answered '{ok} {' '.join(stacks)}'")
        return [each.split(",") for each in stacks]

    def ask(self, line: str) -> str:
        """Have a line of the control socket carried out; its answer."""
        self._lines.write(line.encode() + b"\n")
        self._lines.flush()
        return self._lines.readline().decode().strip()
