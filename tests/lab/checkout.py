"""A small project in git with the pages, clauses and packages that a laboratory's package is made of."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TAKEN = (
    "pyproject.toml", "docs", "host_driver/sabot_table/clauses.json", "protocol/sabot_protocol/__init__.py",
    "host_driver/sabot_lab",
)  # fmt: skip
WHO = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Checkout:
    """A git repository with one commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in TAKEN:
            source, to = ROOT / name, folder / name
            to.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, to, ignore=shutil.ignore_patterns("*.png", "__pycache__"))
            else:
                shutil.copyfile(source, to)
        self.git("init", "--quiet")
        self.commit("The first commit")

    def git(self, *arguments: str) -> str:
        """Run git in it."""
        ran = subprocess.run(
            ["git", "-c", "commit.gpgsign=false", *arguments],
            cwd=self.folder, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", **WHO},
        )  # fmt: skip
        return ran.stdout.strip()

    def commit(self, words: str) -> str:
        """Commit everything; the commit."""
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", words)
        return self.git("rev-parse", "HEAD")

    def results(self, commit: str | None = None) -> Path:
        """Results of a test run in which one case of one clause's test fails."""
        path = self.folder.with_name("results.xml")
        of = commit or self.git("rev-parse", "HEAD")
        path.write_text(RESULTS.replace("COMMIT", of).replace("TEST", FAILING))
        return path


FAILING = "test_a_bad_rule_set_says_what_where_and_what_to_do"
RESULTS = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="COMMIT">
<testcase classname="tests.table.test_rulesets" name="TEST[one]" />
<testcase classname="tests.table.test_rulesets" name="TEST[two]">
<failure message="no">no</failure></testcase>
<testcase classname="tests.portable.test_decks" name="test_one_deck_may_be_played_alone" />
</testsuite></testsuites>"""
