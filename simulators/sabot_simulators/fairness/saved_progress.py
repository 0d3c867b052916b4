"""The shuffles of a long run on disk, batch by batch: a run that was ended goes on where it was.

The file has one JSON object a line. The first one says what is shuffled; a file of another run is refused. A
line that was cut off by the end of a run is dropped, and its batch is shuffled again.
"""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sabot_cli.output import utc
from sabot_cli.written_files import CannotWrite
from sabot_driver.errors import SabotError
from sabot_simulators.fairness.simulated_shuffles import ShuffleBatch, ShuffledBatch, run_all

EVENT = "fairness_progress"


class OtherProgress(SabotError):
    """A file of progress that belongs to another run."""

    advice = "Give the options of that run, or name another file."


class SavedProgress:
    """What a run has shuffled so far, by the number of the batch."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Open or begin a file. `OtherProgress` if it was begun for something else than ``about``."""
        self.path = path
        self.batches: dict[int, ShuffledBatch] = {}
        self.begun = utc(datetime.now(UTC))
        """When the first run began."""
        self._about = {"v": 1, "event": EVENT, **about}
        whole = self._read() if path.exists() else 0
        try:
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(whole)
            self._file.seek(whole)
            if not whole:
                self._write({**self._about, "begun": self.begun})
        except OSError as error:
            raise CannotWrite(f"{path}: {error.strerror}") from error

    def __enter__(self) -> "SavedProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def shuffles(self) -> int:
        """How many shuffles are kept."""
        return sum(len(each.orders) for each in self.batches.values())

    def add(self, number: int, batch: ShuffledBatch, more: bool = False) -> None:
        """Keep a batch, or ``more`` shuffles of one; on disk when this returns."""
        self._write(
            {
                "batch": number,
                "more": more,
                "orders": batch.orders.tolist(),
                "seconds": batch.seconds,
                "stops": batch.stops,
            }
        )
        self._take(number, batch, more)

    def _take(self, number: int, batch: ShuffledBatch, more: bool) -> None:
        before = self.batches.get(number) if more else None
        if before is not None:
            orders = np.vstack((before.orders, batch.orders))
            batch = ShuffledBatch(orders, before.seconds + batch.seconds, before.stops + batch.stops)
        self.batches[number] = batch

    def _write(self, told: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(told).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise CannotWrite(f"{self.path}: {error.strerror}") from error

    def _read(self) -> int:
        """Read the file; how many bytes of it are whole lines."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise CannotWrite(f"{self.path}: {error.strerror}") from error
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].splitlines()
        if not lines:
            if data:
                raise OtherProgress(f"{self.path}: this is no progress of 'sabot fairness'")
            return 0
        try:
            first, *rest = (json.loads(line) for line in lines)
            self._compare(first)
            for each in rest:
                orders = np.array(each["orders"], np.int16)
                batch = ShuffledBatch(orders, float(each["seconds"]), int(each["stops"]))
                self._take(int(each["batch"]), batch, bool(each["more"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OtherProgress(f"{self.path}: this is no progress of 'sabot fairness': {error!r}") from error
        return whole

    def _compare(self, first: Mapping[str, Any]) -> None:
        if first.get("event") != EVENT:
            raise OtherProgress(f"{self.path}: this is no progress of 'sabot fairness'")
        for name, value in self._about.items():
            if first.get(name) != value:
                raise OtherProgress(f"{self.path}: its {name} is {first.get(name)}, not {value}")
        self.begun = str(first["begun"])


def run_missing(
    work: list[ShuffleBatch], processes: int | None, saved: SavedProgress | None
) -> Iterator[ShuffledBatch]:
    """The result of each batch, in order; those that are kept are not shuffled again, others are kept now."""
    if saved is None:
        yield from run_all(work, processes)
        return
    kept = {
        number: saved.batches[number]
        for number, batch in enumerate(work)
        if number in saved.batches and len(saved.batches[number].orders) == batch.shuffles
    }
    for number in [number for number in saved.batches if number not in kept]:
        del saved.batches[number]  # the last one of a shorter run: it is shuffled again, whole
    fresh = run_all([batch for number, batch in enumerate(work) if number not in kept], processes)
    for number in range(len(work)):
        if number in kept:
            yield kept[number]
        else:
            batch = next(fresh)
            saved.add(number, batch)
            yield batch
