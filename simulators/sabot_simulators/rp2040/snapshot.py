"""A moment to go on from as often as one likes: the emulated Pico and everything around it."""

from copy import deepcopy
from typing import Generic, TypeVar

from sabot_simulators.rp2040.pico import Pico

T = TypeVar("T")


class Snapshot(Generic[T]):
    """A Pico, and things that hold it, as they were when this was made."""

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
