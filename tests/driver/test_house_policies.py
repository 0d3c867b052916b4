"""A table's house policy from the command line: in force however the table is run, else the table stops."""

import io
from pathlib import Path

import pytest
from tests.conformance.targets import Tcp
from tests.driver.command import Sabot

pytestmark = pytest.mark.slow

STRICT = """\
name = "pit-2"

[limits.wagers.ante]
least = 1500
most = 2500
"""
LAX = """\
name = "pit-3"

[hours]
shoe = 99
"""


def strict_policy(folder: Path) -> Path:
    path = folder / "pit-2.toml"
    path.write_text(STRICT)
    return path


def test_a_policy_is_in_force_by_the_tables_name_and_by_its_devices_url(sabot: Sabot, tmp_path: Path) -> None:
    target, policy = Tcp(tmp_path), strict_policy(tmp_path)
    url = target.listener.url
    wagers = tmp_path / "wagers.toml"
    wagers.write_text("[1]\nante = 5000\n")
    device = ("--device", url, "--simulator")
    assert sabot("table", "set", "BAC-07", *device, "--policy", policy).code == 0
    (listed,) = sabot("table", "list", "--json").lines
    assert len(listed["policy"]) == 64
    policy.unlink()  # the table has its own copy
    for way in (("--table", "BAC-07"), device):
        ran = sabot("play", *way, "--auto", "--rounds", 1, "--wagers", wagers, "--json")
        assert (ran.code, "stake 2500 cents at most" in ran.lines[-1]["message"]) == (2, True), ran.out
    assert sabot("table", "set", "BAC-07", *device, "--no-policy").code == 0
    ran = sabot("play", "--table", "BAC-07", "--auto", "--rounds", 1, "--wagers", wagers, "--json")
    assert ran.code == 0, ran.out + ran.err
    target.close()


def test_only_floor_or_service_takes_a_policy_away(
    sabot: Sabot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any colleague at the computer could drop the policy of a table; the record named only the program."""
    target, policy = Tcp(tmp_path), strict_policy(tmp_path)
    device = ("--device", target.listener.url, "--simulator")
    monkeypatch.setattr("sys.stdin", io.StringIO("13579\n13579\n"))
    assert sabot("table", "set", "T", *device, "--policy", policy).code == 0
    assert sabot("people", "add", "--pin-stdin", "flo", "--name", "Flo", "--role", "floor").code == 0
    assert sabot("people", "badge", "flo", "0012345678").code == 0
    other = tmp_path / "other.toml"
    other.write_text(STRICT.replace("2500", "2600"))
    for change in (("--no-policy",), ("--policy", other)):
        ran = sabot("table", "set", "T", *device, *change, "--json")
        assert (ran.code, ran.lines[-1]["error"]) == (5, "NotAuthorised"), ran.out
    assert sabot("table", "set", "T", *device).code == 0, "the policy stays"
    (listed,) = sabot("table", "list", "--json").lines
    assert listed["policy"] is not None
    leave = ("--by-badge", "0012345678", "--pin-stdin")
    assert sabot("table", "set", "T", *device, "--no-policy", *leave).code == 0
    (listed,) = sabot("table", "list", "--json").lines
    assert listed["policy"] is None
    target.close()


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_a_table_whose_policy_is_missing_or_changed_is_not_run(
    sabot: Sabot, tmp_path: Path, home: Path, harm: str
) -> None:
    target, policy = Tcp(tmp_path), strict_policy(tmp_path)
    device = ("--device", target.listener.url, "--simulator")
    assert sabot("table", "set", "T", *device, "--policy", policy).code == 0
    (kept,) = (home / "policies").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    if harm == "missing":
        kept.unlink()
    else:
        kept.write_text(STRICT.replace("2500", "9999999"))
    for command in (("play", "--auto", "--rounds", 1), ("table", "open")):
        ran = sabot(*command, "--table", "T", "--json")
        assert (ran.code, ran.lines[-1]["error"]) == (1, "PolicyGone"), ran.out
    target.close()


def test_a_policy_that_is_laxer_than_the_text_is_not_kept(sabot: Sabot, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "lax.toml"
    path.write_text(LAX)
    ran = sabot("table", "set", "T", "--device", "sim://", "--policy", path, "--json")
    assert (ran.code, ran.lines[-1]["error"]) == (1, "PolicyUnfit")
    assert "hours.shoe" in ran.lines[-1]["message"]
    assert not (home / "policies").exists()
    assert sabot("table", "list", "--json").lines == []
    assert sabot("table", "set", "T", "--device", "sim://", "--policy", path, "--no-policy").code == 2
