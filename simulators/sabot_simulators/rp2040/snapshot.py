"""A snapshot of the emulated Pico and the objects around it, which can be restored repeatedly."""

from copy import deepcopy
from typing import Generic, TypeVar

from sabot_simulators.rp2040.pico import Pico

T = TypeVar("T")


class Snapshot(Generic[T]):
    """A Pico and the objects that refer to it, as they were when the snapshot was taken."""

    def __init__(self, pico: Pico, name: str, things: T) -> None:
        self._pico = pico
        self._name = name
        pico.snapshot(name)
        self._things = self._copy(things)

    def restored(self) -> T:
        """The things as they were, on the same Pico, which is as it was too."""
        self._pico.restore(self._name)
        return self._copy(self._things)

    def _copy(self, things: T) -> T:
        return deepcopy(things, {id(self._pico): self._pico})
