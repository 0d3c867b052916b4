"""``python -m tests.evidence.campaign``: 10,000 random edits of a real day's files."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from tests.evidence.day import Day, play_day
from tests.evidence.edits import one_edit

from sabot_evidence import verifier


def verdict(paths: list[Path], lines: tuple[str, ...]) -> verifier.Report | None:
    """What the verifier says of files, with the floor's lines; None if it cannot read them."""
    anchors = [
        verifier.Anchor("the floor's line", each["of"], each["chain"], int(each["row"]), digits, True)
        for each in verifier.LINE.finditer("\n".join(lines))
        for digits in [each["hash"].replace("-", "")]
    ]
    with ExitStack() as stack:
        try:
            files, _ = verifier.open_files(paths, stack)
        except verifier.Unreadable:
            return None
        return verifier.verify(files, anchors=anchors)


def edit_and_verify(day: Day, folder: Path, seed: int) -> tuple[str, bool, str]:
    """One edit: what was done, whether it is found, and the first kind of finding."""
    journal, record = day.copy(folder)
    done = one_edit(journal, record, day.key, seed)
    report = verdict([journal, record], day.end)
    kinds = (
        [] if report is None else [each.kind for each in report.findings if each.kind in verifier.WRONG_KINDS]
    )
    return done, report is None or report.code == verifier.WRONG, kinds[0] if kinds else "unreadable"


def main() -> None:
    """Edit, verify, and write the result page if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--edits", type=int, default=10_000)
    options.add_argument("--honest", type=int, default=20)
    options.add_argument("--write", type=Path)
    chosen = options.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        accused = 0
        for number in range(chosen.honest):
            day = play_day(folder / f"day{number}")
            for moment, lines in (("middle", day.middle), ("end", day.end)):
                report = verdict(day.copy(folder / "honest", moment), lines)
                accused += report is None or report.code != verifier.OK
        by_kind: Counter[tuple[str, str]] = Counter()
        missed = []
        for seed in range(chosen.edits):
            done, found, kind = edit_and_verify(day, folder / "edited", seed)
            by_kind[done.partition(":")[0], kind if found else "not found"] += 1
            if not found:
                missed.append(f"seed {seed}: {done}")
    page = [
        f"# {chosen.edits:,} random edits of a day's files",
        "",
        f"`make evidence-edits`, {datetime.now(UTC):%Y-%m-%d}, {time.monotonic() - began:.0f} s.",
        "",
        f"- Honest files: {2 * chosen.honest} pairs of journal and record, of {chosen.honest} days with a "
        f"power cut each; {accused} accused.",
        f"- Edits: {chosen.edits:,}, each of a fresh copy, verified with the floor's two lines; "
        f"{len(missed)} not found.",
        "",
        "| edit, and what the attacker knows | first finding | edits |",
        "| --- | --- | --- |",
        *(f"| {done} | {kind} | {count} |" for (done, kind), count in sorted(by_kind.items())),
        *["", *(f"- not found: {each}" for each in missed[:50])],
    ]
    text = "\n".join(page).rstrip() + "\n"
    if chosen.write is not None:
        chosen.write.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    sys.exit(1 if missed or accused else 0)


if __name__ == "__main__":
    main()
