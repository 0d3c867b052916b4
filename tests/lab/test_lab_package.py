"""``sabot lab-package``: what is in it, that it is the same every time, and what verifying it finds."""

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from tests.driver.command import Sabot
from tests.lab.checkout import FAILING, Checkout

from sabot_evidence.signing_key import draw_signing_key
from sabot_lab import archive, build
from sabot_lab.errors import PackageBad, ResultsUnusable, SourceUnusable
from sabot_lab.source_tree import SourceTree


def built(checkout: Checkout, results: Path | None = None) -> bytes:
    """The package of a checkout."""
    return build.build(SourceTree(checkout.folder), None if results is None else results.read_bytes(), {})


def inside(package: bytes) -> dict[str, str]:
    """The texts of a package."""
    with zipfile.ZipFile(io.BytesIO(package)) as files:
        return {name: files.read(name).decode() for name in files.namelist()}


def edited(package: bytes, **changes: bytes | None) -> bytes:
    """The package with other files; None removes one."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(made, "w") as new:
        files = {name: old.read(name) for name in old.namelist()} | changes
        for name, data in files.items():
            if data is not None:
                new.writestr(name, data)
    return made.getvalue()


def test_the_commands_build_sign_and_verify(sabot: Sabot, checkout: Checkout, tmp_path: Path) -> None:
    out, key = tmp_path / "lab.zip", tmp_path / "maker.pem"
    ran = sabot("lab-package", "build", "--source", checkout.folder, "--results", checkout.results(),
                "--out", out, "--json")  # fmt: skip
    assert ran.code == 0, ran.out
    assert sabot("lab-package", "verify", out).code == 5, "it is not signed yet"
    unsigned = out.read_bytes()
    (told,) = sabot("evidence", "new-key", key, "--json").lines
    assert sabot("lab-package", "sign", out, "--key", key).code == 0
    ran = sabot("lab-package", "verify", out, "--trust", told["public"], "--json")
    assert (ran.code, ran.lines[0]["commit"]) == (0, checkout.git("rev-parse", "HEAD"))
    assert archive.unsigned(out.read_bytes()) == unsigned
    ran = sabot("lab-package", "verify", out, "--trust", "ab" * 32, "--json")
    assert (ran.code, "not the key you trust" in ran.lines[-1]["message"]) == (5, True)
    ran = sabot("lab-package", "sign", out, "--key", key, "--json")
    assert (ran.code, ran.lines[-1]["message"]) == (5, "the package is signed already")


def test_built_twice_it_is_identical_before_signing(checkout: Checkout, tmp_path: Path) -> None:
    """Also from another clone in another folder, whose files are of another time."""
    other = tmp_path / "other" / "place"
    other.parent.mkdir()
    checkout.git("clone", "--quiet", str(checkout.folder), str(other))
    again = build.build(SourceTree(other), checkout.results().read_bytes(), {})
    assert built(checkout, checkout.results()) == again
    assert built(checkout, None) != again


def test_it_has_what_a_laboratory_asks_for(checkout: Checkout) -> None:
    files = inside(built(checkout, checkout.results()))
    rows = list(csv.DictReader(io.StringIO(files["clauses.csv"])))
    by_test = {row["test"]: row["result of the test"] for row in rows}
    assert by_test[f"tests/table/test_rulesets.py::{FAILING}"] == "failed"
    assert by_test["tests/portable/test_decks.py::test_one_deck_may_be_played_alone"] == "passed"
    assert {row["result of the clause"] for row in rows} >= {"failed", "not run", "no test: people do it"}
    assert {row["clause"] for row in rows} == {
        each["clause"] for each in json.loads((checkout.folder / build.CLAUSES).read_text())
    }
    parts = json.loads(files["components.json"])
    assert parts["packages_sha256"].keys() >= {"sabot_protocol", "sabot_firmware", "sabot_lab"}
    assert any(each.startswith("cryptography>=") for each in parts["lowest_versions"]["libraries"])
    assert files["noise.md"].count("To be taken on the board") == 1
    assert "1,000 restarts of 1,000 samples" in files["noise.md"]
    assert "Somebody who opens the housing" in files["risks.md"]
    assert "Time the elevator by a microphone or the supply current: 34 to 215 bits" in files["risks.md"]
    assert files["faults.csv"] == (checkout.folder / "docs/faults.csv").read_text()
    assert "make fairness" in files["fairness/commands.md"]
    assert f"git checkout {checkout.git('rev-parse', 'HEAD')}" in files["recipe.md"]
    assert files["sources.sha256"].count("\n") == len(checkout.git("ls-files").splitlines())
    assert "no release was made before, so everything is new" in files["changes.md"]


def test_changes_are_told_against_the_last_release(checkout: Checkout) -> None:
    checkout.git("tag", "v0.1.0")
    (checkout.folder / build.CLAUSES).write_text("[]")
    checkout.commit("The clauses are gone")
    text = inside(built(checkout))["changes.md"]
    assert "Against release v0.1.0." in text
    assert "| the rules | 1 | make test (rules, table), make monte-carlo |" in text
    assert "| the wire | 0 | nothing |" in text
    assert text.count("\n- ") == 2, "one commit and one file"


def test_no_package_of_a_changed_tree_or_of_other_results(checkout: Checkout, tmp_path: Path) -> None:
    other = checkout.results("ab" * 20)
    with pytest.raises(ResultsUnusable, match="the results are of 'abab"):
        built(checkout, other)
    other.write_text("<testsuites/>")
    with pytest.raises(ResultsUnusable, match="no test run"):
        built(checkout, other)
    other.write_text('<!DOCTYPE x [<!ENTITY a "b">]><testsuite name="x"/>')
    with pytest.raises(ResultsUnusable, match="entities"):
        built(checkout, other)
    (checkout.folder / "docs" / "faults.md").write_text("changed")
    with pytest.raises(SourceUnusable, match=r"1 files differ from the commit, such as docs/faults\.md"):
        built(checkout)
    with pytest.raises(SourceUnusable):
        SourceTree(tmp_path / "nowhere")
    shutil.rmtree(checkout.folder / "docs")
    checkout.commit("No pages")
    with pytest.raises(SourceUnusable, match="No such file"):
        built(checkout)


@pytest.mark.slow
def test_every_change_of_a_package_is_found(checkout: Checkout, tmp_path: Path) -> None:
    key = draw_signing_key(tmp_path / "maker.pem")
    package = archive.sign(built(checkout), key, "ab" * 20, 1)
    archive.verify(package, key.public)
    files = inside(package)
    for name in files:
        changed = files[name].encode()[:-2] + b"?\n"
        with pytest.raises(PackageBad):
            archive.verify(edited(package, **{name: changed}), key.public)
        with pytest.raises(PackageBad):
            archive.verify(edited(package, **{name: None}), key.public)
    with pytest.raises(PackageBad, match=r"extra\.md was added"):
        archive.verify(edited(package, **{"extra.md": b"x"}), key.public)
    other = archive.sign(archive.pack({"components.json": b"{}"}), key, "ab" * 20, 1)
    with pytest.raises(PackageBad, match="the signature is of another manifest"):
        archive.verify(edited(package, **{"SIGNATURE.json": inside(other)["SIGNATURE.json"].encode()}))
    signed = json.loads(files["SIGNATURE.json"])
    signed["statement"] = signed["statement"].replace("ab" * 20, "cd" * 20)  # the old signature
    with pytest.raises(PackageBad, match="the signature does not fit"):
        archive.verify(edited(package, **{"SIGNATURE.json": json.dumps(signed).encode()}), key.public)
    for data in (b"", b"no zip", package[:1000]):
        with pytest.raises(PackageBad):
            archive.verify(data)
