"""Coverage-guided fuzzing of every target with atheris: ``python tests/fuzz/fuzz_wire.py --seconds 60``.

The first byte of an input names the target, the rest is the target's. New inputs that reach new code are kept
in build/fuzz-corpus, inputs that break a promise in build/fuzz-crashes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections import Counter
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # so that it can be run by its file name
with atheris.instrument_imports(include=["sabot_protocol"]):
    from tests.fuzz import corpus, monitored_wire, targets

FOUND = ROOT / "build" / "fuzz-corpus"
CRASHES = ROOT / "build" / "fuzz-crashes"
LONGEST_INPUT = 2048
NOT_TRIED = ("genuine", "executed", "reconnect", "reboot")
RENEW = 4096  # forged frames before an attack begins again with new keys


class Fuzzing:
    """One run: attacks go on from input to input, and are renewed now and then."""

    def __init__(self, seconds: float, frames: int) -> None:
        self._frames = frames
        self._begun = time.monotonic()
        self._ends = self._begun + seconds
        self._attacks: dict[str, targets.Attack] = {}
        self._history: dict[str, list[bytes]] = {}
        self.tallies: dict[str, Counter[str]] = {name: Counter() for name, _ in targets.TARGETS}
        self.inputs = 0

    def one_input(self, data: bytes) -> None:
        """Try one input; ends the process when the time is over or a promise is broken."""
        self.inputs += 1
        if data:
            name, target = targets.TARGETS[data[0] % len(targets.TARGETS)]
            try:
                self._try(name, target, data[1:])
            except monitored_wire.Broken as broken:
                self.finish(broken, self._keep(name, data))
        if self.inputs & 15 == 0 and (time.monotonic() > self._ends or self.tried() >= self._frames):
            self.finish(None, None)

    def tried(self) -> int:
        """Frames, chunks, messages and packets so far, without the genuine ones in between."""
        every = [each for tally in self.tallies.values() for each in tally.items()]
        return sum(count for kind, count in every if kind not in NOT_TRIED)

    def _try(self, name: str, target: targets.Target, data: bytes) -> None:
        make = targets.ATTACKS.get(name)
        if make is None:
            target(data, self.tallies[name])
            return
        attack = self._attacks.get(name)
        if attack is None or attack.strikes > RENEW:
            attack = self._attacks[name] = make(0, self.tallies[name])
            self._history[name] = []
        self._history[name].append(data)
        targets.strike_all(attack, data)

    def _keep(self, name: str, data: bytes) -> Path:
        """Write the input that broke a promise: alone if that is enough, else with those before it."""
        if name in targets.ATTACKS:
            alone = Counter[str]()
            try:
                dict(targets.TARGETS)[name](data[1:], alone)
                data = data[:1] + targets.joined(self._history[name])
            except monitored_wire.Broken:
                pass
        CRASHES.mkdir(parents=True, exist_ok=True)
        path = CRASHES / ("%s-%s" % (name, hashlib.sha256(data).hexdigest()[:16]))
        path.write_bytes(data)
        return path

    def finish(self, broken: monitored_wire.Broken | None, kept: Path | None) -> None:
        """Tell what was done and end the process: libFuzzer would not come back."""
        seconds = time.monotonic() - self._begun
        lines = []
        for name, tally in self.tallies.items():
            kinds = " ".join("%s=%d" % each for each in sorted(tally.items()))
            lines.append("%-14s %s" % (name, kinds))
        promise = None if broken is None else broken.promise
        lines.append(
            "%d inputs, %d frames tried in %.1f s (%d/s), exceptions %d, accepted commands %d"
            % (
                self.inputs,
                self.tried(),
                seconds,
                self.tried() / max(seconds, 0.001),
                promise == monitored_wire.EXCEPTION,
                promise == monitored_wire.ACCEPTED_COMMAND,
            )
        )
        if broken is not None and kept is not None:
            lines.append("BROKEN %s" % broken)
            lines.append("replay: python tests/fuzz/fuzz_wire.py --replay %s" % kept.relative_to(ROOT))
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        os._exit(0 if broken is None else 1)


def replay(path: Path) -> int:
    """Try one kept input from a fresh start, with the whole traceback; 0 if every promise holds."""
    data = path.read_bytes()
    name, target = targets.TARGETS[data[0] % len(targets.TARGETS)]
    tally = Counter[str]()
    target(data[1:], tally)
    sys.stdout.write("%s: held; %s\n" % (name, dict(tally)))
    return 0


def main() -> int:
    """Fuzz, replay, or write the seed corpus again."""
    parser = argparse.ArgumentParser(description="Fuzz the wire: frames, messages, device, host.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--frames", type=int, default=sys.maxsize, help="end after so many frames")
    parser.add_argument("--replay", type=Path, help="try one input and say what happens")
    parser.add_argument("--write-corpus", action="store_true", help="make tests/fuzz/corpus again")
    parser.add_argument("--seed", type=int, default=0, help="libFuzzer's; 0 takes another one each time")
    given = parser.parse_args()
    if given.write_corpus:
        sys.stdout.write("%d files\n" % corpus.write_corpus(corpus.FOLDER))
        return 0
    if given.replay is not None:
        return replay(given.replay)
    FOUND.mkdir(parents=True, exist_ok=True)
    CRASHES.mkdir(parents=True, exist_ok=True)
    fuzzing = Fuzzing(given.seconds, given.frames)
    flags = [
        "-max_len=%d" % LONGEST_INPUT,
        "-len_control=0",
        "-seed=%d" % given.seed,
        "-timeout=20",
        "-verbosity=0",
        "-artifact_prefix=%s/" % CRASHES,
    ]
    atheris.Setup([sys.argv[0], *flags, str(FOUND), str(corpus.FOLDER)], fuzzing.one_input)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
