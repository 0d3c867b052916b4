"""``python -m tests.mutants``: try the sample of each package and write the page of results."""

import argparse
import os
import sys

from tests.mutants import campaign, coverage_map, planted, report
from tests.mutants.mutations import sample_of
from tests.mutants.packages import MUTATED, SAMPLE, mutated_files


def say(text: str) -> None:
    """Print a line at once: a run takes hours."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run what the command line asks for; 1 if a planted defect was not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "packages", nargs="*", metavar="package", help=f"of {', '.join(MUTATED)}; all without one"
    )
    parser.add_argument(
        "--planted", action="store_true", help="only the defects of planted.toml, which tests must notice"
    )
    parser.add_argument("--report", action="store_true", help="only write the page of what was tried")
    parser.add_argument(
        "--recorded", action="store_true", help="use the map of tests and lines as far as it is recorded"
    )
    parser.add_argument("--size", type=int, default=SAMPLE, help="mutants a package")
    parser.add_argument(
        "--tests-s", type=float, default=campaign.LIMIT_S, help="seconds of tests a mutant, fastest first"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    unknown = set(given.packages) - set(MUTATED)
    if unknown:
        parser.error(f"no such package: {', '.join(sorted(unknown))}")
    if given.planted:
        return planted.run(given.workers, say)
    packages = given.packages or list(MUTATED)
    if not given.report:
        if not given.recorded:
            coverage_map.record(given.workers, say)
        found = coverage_map.load()
        for package in packages:
            last = {result.name: result for result in campaign.results()}
            jobs = [
                campaign.job_for(each, found, given.tests_s)
                for each in sample_of(mutated_files(package), given.size)
            ]
            due = [job for job in jobs if campaign.is_due(job, last.get(job.name))]
            say(f"{package}: {len(due)} of {len(jobs)} mutants to try")
            campaign.run(due, given.workers, say)
    say(report.write(given.size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
