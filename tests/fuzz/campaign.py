"""Millions of forged frames from one seed, without a fuzzer.

``python tests/fuzz/campaign.py --frames 10000000 --processes 2``

Ends with one line of JSON and one for people, and with status 1 if any promise was broken.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # so that it can be run by its file name

from tests.fuzz.monitored_wire import ACCEPTED_COMMAND, ACCEPTED_PACKET, EXCEPTION, Broken
from tests.fuzz.targets import ATTACKS, FORGERIES, Attack, UnprovisionedAttack

from sabot_protocol.schema import COUNTERS

FRAMES = 10_000_000
BATCH = 256  # forged frames between two genuine requests
BATCHES = 32  # before new keys, nonces and sessions
SHARES = ("device",) * 6 + ("host",) * 5 + ("unprovisioned",)
SIZES = (8, 8, 8, 16, 32, 64, 128, 260)  # bytes that describe a forgery
SHOWN = 5  # broken promises told in full
PROGRESS_S = 20


def shard(seed: int, frames: int, progress: bool) -> Counter[str]:
    """Try so many frames; counts by ``kind.…``, ``target.…``, ``dropped.…``, ``broken.…``, ``how.…``."""
    source = random.Random(seed)
    found: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    tried = 0
    told_at = time.monotonic()
    while tried < frames:
        target = source.choice(SHARES)
        attack = ATTACKS[target](source.getrandbits(64), kinds)  # raises if genuine traffic fails already
        batches = min(BATCHES, -(-(frames - tried) // BATCH))
        try:
            for _ in range(batches):
                for _ in range(min(BATCH, frames - tried)):
                    tried += 1
                    attack.strike(source.randrange(len(FORGERIES)), source.randbytes(source.choice(SIZES)))
                attack.settle()
        except Broken as broken:
            found["broken." + broken.promise] += 1
            if sum(1 for name in found if name.startswith("how.")) < SHOWN:
                found["how.%s" % broken] += 1
        found["target." + target] += attack.strikes
        _count_drops(attack, target, found)
        if progress and time.monotonic() - told_at > PROGRESS_S:
            told_at = time.monotonic()
            sys.stderr.write("%d of %d frames\n" % (tried, frames))
    for kind, count in kinds.items():
        found["kind." + kind] = count
    return found


def _count_drops(attack: Attack, target: str, found: Counter[str]) -> None:
    """Why frames were dropped shows how deep they came."""
    if isinstance(attack, UnprovisionedAttack):
        return
    end = attack.wire.port if target == "device" else attack.wire.host
    for name, count in zip(COUNTERS, end.diagnostics.counters(), strict=True):
        if count and name not in ("frames_in", "frames_out"):
            found["dropped." + name] += count


def summary(found: Counter[str], seconds: float, seed: int, processes: int) -> dict[str, Any]:
    """The figures of a campaign."""

    def part(prefix: str) -> dict[str, int]:
        names = sorted(name for name in found if name.startswith(prefix))
        return {name[len(prefix) :]: found[name] for name in names}

    kinds = part("kind.")
    genuine = kinds.pop("genuine", 0)
    frames = sum(kinds.values())
    broken = part("broken.")
    return {
        "frames": frames,
        "seconds": round(seconds, 1),
        "frames_per_s": round(frames / seconds),
        "seed": seed,
        "processes": processes,
        "exceptions": broken.pop(EXCEPTION, 0),
        "accepted_commands": broken.pop(ACCEPTED_COMMAND, 0),
        "accepted_packets": broken.pop(ACCEPTED_PACKET, 0),
        "other_broken": broken,
        "genuine_answered": genuine,
        "targets": part("target."),
        "kinds": kinds,
        "seen_by_receivers": part("dropped."),
        "how": list(part("how.")),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign; 0 if every promise held."""
    parser = argparse.ArgumentParser(description="Forged frames against both ends, from one seed.")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", action="store_true", help="say on stderr how far it is")
    given = parser.parse_args(arguments)
    begun = time.monotonic()
    shares = [given.frames // given.processes] * given.processes
    shares[0] += given.frames - sum(shares)
    work = [(given.seed * 1000 + index, share, given.progress) for index, share in enumerate(shares)]
    found: Counter[str] = Counter()
    if given.processes == 1:
        found = shard(*work[0])
    else:
        with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
            for each in pool.starmap(shard, work):
                found += each
    told = summary(found, time.monotonic() - begun, given.seed, given.processes)
    held = not any(name.startswith("broken.") for name in found) and told["frames"] == given.frames
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.write(
        "%s: %d frames in %.1f s (%d/s), %d exceptions, %d accepted commands, %d accepted packets, "
        "%d genuine requests answered in between\n"
        % (
            "held" if held else "BROKEN",
            told["frames"],
            told["seconds"],
            told["frames_per_s"],
            told["exceptions"],
            told["accepted_commands"],
            told["accepted_packets"],
            told["genuine_answered"],
        )
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
