"""``sabot fairness``, ``sabot audit`` and ``sabot rng``: what they say, what they find, how they end."""

import hashlib
import json
import sys
from pathlib import Path

import pytest
from pytest_mock import MockerFixture
from tests.fairness.sessions import Lines, Sabot, Session

from sabot_driver.journal import Journal
from sabot_simulators.fairness import simulated_shuffles

pytestmark = pytest.mark.slow

# -- sabot fairness ------------------------------------------------------------------------------


def test_fairness_writes_orders_a_page_and_one_object_a_line(sabot: Sabot, tmp_path: Path) -> None:
    orders, page = tmp_path / "orders.txt", tmp_path / "page"
    files = ["--orders", str(orders), "--report", str(page)]
    code, lines = sabot("fairness", "--shuffles", "100", "--processes", "1", *files)
    assert code == 0
    assert lines[-1]["verdict"] == "uniform"
    assert lines[-1]["shuffles"] == 100
    assert lines[-1]["seconds_per_thousand"] > 0
    assert all(line["v"] == 1 and line["at"] and line["simulator"] for line in lines)
    tests = [line for line in lines if line["event"] == "test"]
    assert len(tests) == 14
    assert all(0 <= line["p"] <= line["p_corrected"] <= 1 for line in tests)
    rows = orders.read_text().splitlines()
    assert len(rows) == 100
    assert sorted(map(int, rows[0].split())) == list(range(52))
    assert lines[-1]["orders_sha256"] == hashlib.sha256(orders.read_bytes()).hexdigest()
    text = (page / "index.html").read_text()
    said = (lines[-1]["orders_sha256"], "no bias found", "Holm", "sabot fairness --shuffles 100")
    also = (
        "component firmware",
        "The tests would have seen, with 99 %",
        "R. Graham, Annals of Statistics 9",
    )
    drawn = ("@media print", "position", "line: seen; dots: uniform deck", "standard deviations")
    assert [words for words in said + also + drawn if words not in text] == []
    assert text.count("<li>") == 14, "a method for each test"
    assert text.count("<svg") == 2
    assert text.count("<rect") == 52 * 52


def test_a_run_that_was_ended_goes_on_where_it_was(
    sabot: Sabot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mocker: MockerFixture
) -> None:
    monkeypatch.setitem(simulated_shuffles.AT_ONCE, 52, 4)
    path = tmp_path / "progress.jsonl"
    run = ("fairness", "--processes", "1", "--progress", str(path), "--shuffles")
    whole = sabot(*run[:3], "--shuffles", "10")[1][-1]["orders_sha256"]
    assert sabot(*run, "10")[1][-1]["orders_sha256"] == whole
    kept = path.read_bytes()
    path.write_bytes(kept[:-100])  # killed while it wrote
    shuffled = mocker.spy(simulated_shuffles.ShuffleBatch, "run")
    assert sabot(*run, "10")[1][-1]["orders_sha256"] == whole
    assert [each.args[0].shuffles for each in shuffled.call_args_list] == [2], "only the last one again"
    longer = sabot(*run, "12")[1][-1]
    assert [each.args[0].shuffles for each in shuffled.call_args_list] == [2, 4]
    assert (longer["shuffles"], longer["stops"]) == (12, 0)
    again = sabot(*run, "12")[1][-1]
    assert again["orders_sha256"] == longer["orders_sha256"]
    assert shuffled.call_count == 2, "nothing is left to shuffle"


def test_progress_of_another_run_is_refused_and_left_as_it_is(sabot: Sabot, tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    run = ("fairness", "--processes", "1", "--progress", str(path), "--shuffles", "2")
    sabot(*run)
    kept = path.read_bytes()
    for other in (("--seed", "2"), ("--plant", "lcg32"), ("--device", "sim://")):
        code, lines = sabot(*run, *other)
        assert (code, lines[-1]["error"]) == (1, "OtherProgress"), other
    assert path.read_bytes() == kept
    for strange in (b"my diary", b'{"v": 1}\n', b"[]\n"):
        path.write_bytes(strange)
        assert sabot(*run)[1][-1]["error"] == "OtherProgress"
        assert path.read_bytes() == strange


def test_progress_on_a_device_is_kept_order_by_order(sabot: Sabot, tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    run = ("fairness", "--device", "sim://", "--progress", str(path), "--shuffles")
    assert sabot(*run, "2")[1][-1]["shuffles"] == 2
    code, lines = sabot(*run, "3")
    assert code == 5
    assert [each["shuffles"] for each in lines if each["event"] == "hello"] == [1], "one more"
    assert lines[-1]["shuffles"] == 3
    assert set(lines[-1]["components"]) == {"controller", "card_recognition", "rng"}


@pytest.mark.parametrize("option", ["--orders", "--report", "--progress"])
def test_a_path_that_cannot_be_written_is_told_before_anything_is_shuffled(
    sabot: Sabot, tmp_path: Path, option: str
) -> None:
    (tmp_path / "file").write_text("")
    code, lines = sabot("fairness", "--shuffles", "1000000", option, str(tmp_path / "file" / "below"))
    assert (code, lines[-1]["error"]) == (1, "CannotWrite")


def test_a_biased_machine_ends_fairness_with_5(sabot: Sabot) -> None:
    plant = ["--plant", "no-reseed", "--until-flagged"]
    code, lines = sabot("fairness", "--shuffles", "100", "--processes", "1", *plant)
    assert code == 5
    assert (lines[-1]["verdict"], lines[-1]["plant"], lines[-1]["flagged_at"]) == ("biased", "no-reseed", 100)


def test_without_numpy_fairness_says_what_to_install(sabot: Sabot, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("sabot_simulators.fairness.")]:
        if not name.endswith((".command", ".plants")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    code, lines = sabot("fairness", "--shuffles", "100")
    assert code == 1
    assert lines[-1]["error"] == "EvidenceMissing"
    assert "numpy" in lines[-1]["message"]
    assert "sabot[fairness]" in lines[-1]["advice"]


def test_fairness_on_a_device_reads_the_deck_and_can_be_audited(sabot: Sabot, tmp_path: Path) -> None:
    orders = tmp_path / "orders.txt"
    code, lines = sabot("fairness", "--shuffles", "3", "--device", "sim://", "--orders", str(orders))
    assert code == 5
    assert lines[-1]["verdict"] == "too_few", "three shuffles say nothing"
    assert len(orders.read_text().splitlines()) == 3
    told = tmp_path / "lab.jsonl"
    told.write_text("\n".join(map(json.dumps, lines)))
    code, lines = sabot("audit", str(told))
    assert code == 0
    assert (lines[-1]["proved"], lines[-1]["secret"]) == (3, 1)
    assert [line["faces"] for line in lines[:3]] == [0, 52, 52]  # nobody knew how the first one was fed


def test_a_machine_that_stops_ends_fairness_with_7(sabot: Sabot) -> None:
    code, lines = sabot("fairness", "--shuffles", "3", "--device", "sim://?fault=stuck@insertion:70")
    assert code == 7
    assert lines[-1]["fault"] == "card_stuck"


def test_a_device_has_neither_plants_nor_other_decks(sabot: Sabot) -> None:
    assert sabot("fairness", "--device", "sim://", "--plant", "lcg32")[0] == 2
    assert sabot("fairness", "--device", "sim://", "--cards", "416")[0] == 2


# -- sabot audit ---------------------------------------------------------------------------------


def wrong(lines: Lines) -> list[tuple[int, str]]:
    """Each shuffle that is not proved, and the first reason."""
    return [(line["shuffle_id"], line["wrong"][0]) for line in lines if line.get("verdict") == "wrong"]


def flipped(text: str) -> str:
    return ("0" if text[0] != "0" else "1") + text[1:]


@pytest.mark.xdist_group("audit")
def test_a_session_is_proved_from_its_lines_and_with_its_journal(sabot: Sabot, session: Session) -> None:
    for more in ([], ["--journal", str(session.journal)]):
        code, lines = sabot("audit", str(session.written()), *more)
        assert code == 0, lines
        assert [line["verdict"] for line in lines[:-1]] == ["proved"] * 3 + ["secret"]
        assert lines[-1]["serial"] == "SIM00001"
        assert lines[-1]["ok"] is True


@pytest.mark.xdist_group("audit")
def test_a_journal_alone_proves_nothing_as_it_has_no_seeds(sabot: Sabot, session: Session) -> None:
    code, lines = sabot("audit", "--journal", str(session.journal))
    assert code == 5
    assert (lines[-1]["not_kept"], lines[-1]["secret"]) == (3, 1), "three decks were fed again"


@pytest.mark.xdist_group("audit")
def test_every_change_to_a_reveal_is_found_and_named(sabot: Sabot, session: Session) -> None:
    (reveal,) = [
        line for line in session.lines if line["event"] == "shuffle_revealed" and line["shuffle_id"] == 2
    ]
    placed = list(reveal["placed"])
    placed[30] = (placed[30] + 1) % 31
    differs = "is not the same in told.jsonl and told.jsonl (reveal)"
    not_bound = "the seed is not the one that device, deck and shuffle were bound to"
    moved = f"card 30 was to go under {reveal['placed'][30]} cards and went under {placed[30]}"
    for changes, why in (
        ({"seed": flipped(reveal["seed"])}, not_bound),
        ({"nonce": flipped(reveal["nonce"])}, f"the nonce {differs}"),
        ({"commitment": flipped(reveal["commitment"])}, f"the commitment {differs}"),
        ({"deck_id": 7}, f"the deck {differs}"),
        ({"cards": 51}, not_bound),
        ({"placed": placed}, moved),
        ({"placed": placed[:40]}, "40 of 52 cards were reported"),
    ):
        code, lines = sabot("audit", str(session.written(**changes)))
        assert code == 5
        assert wrong(lines) == [(2, why)]


@pytest.mark.xdist_group("audit")
def test_another_device_another_number_and_another_order_are_found(sabot: Sabot, session: Session) -> None:
    told = session.written()
    text = told.read_text()
    changed = session.folder / "changed.jsonl"
    changed.write_text(text.replace("SIM00001", "SIM00002"))
    code, lines = sabot("audit", str(changed))
    assert code == 5
    assert [number for number, _ in wrong(lines)] == [1, 2, 3]
    code, lines = sabot("audit", str(changed), "--journal", str(session.journal))
    assert code == 5
    assert "different devices" in lines[-2]["wrong"]
    changed.write_text(text.replace('"shuffle_id": 2', '"shuffle_id": 9'))
    code, lines = sabot("audit", str(changed))
    assert code == 5
    assert wrong(lines)[0][0] == 9
    (out,) = [line for line in session.lines if line["event"] == "deck_out" and line["shuffle_id"] == 2]
    cards = list(out["cards"])
    cards[7], cards[8] = cards[8], cards[7]
    changed.write_text(text.replace(json.dumps(out), json.dumps({**out, "cards": cards})))
    code, lines = sabot("audit", str(changed))
    assert code == 5
    assert wrong(lines)[0] == (2, f"card 7 from the top was to be {out['cards'][7]} and is {cards[7]}")
    assert wrong(lines)[1:] == []  # what was fed is told apart


@pytest.mark.xdist_group("audit")
def test_a_reveal_that_nobody_was_promised_proves_nothing(sabot: Sabot, session: Session) -> None:
    alone = session.folder / "alone.jsonl"
    alone.write_text(
        "\n".join(json.dumps(line) for line in session.lines if line["event"] != "shuffle_committed")
    )
    code, lines = sabot("audit", str(alone))
    assert code == 5
    assert wrong(lines)[0] == (1, "no source has the commitment from before the reveal")
    code, lines = sabot("audit", str(alone), "--journal", str(session.journal))
    assert code == 0  # the journal did


@pytest.mark.xdist_group("audit")
def test_a_try_that_nobody_tells_of_is_missed(sabot: Sabot, session: Session, tmp_path: Path) -> None:
    changed = tmp_path / "journal.db"
    changed.write_bytes(session.journal.read_bytes())
    with Journal(changed) as journal:  # shuffle 2 as if it had never been
        journal._do("DELETE FROM events WHERE message >= 200 AND substr(body, 5, 4) = x'02000000'", ())
        journal._do("DELETE FROM commands WHERE message = 194 AND substr(body, 1, 4) = x'02000000'", ())
    lines_without = tmp_path / "less.jsonl"
    lines_without.write_text(
        "\n".join(json.dumps(line) for line in session.lines if line.get("shuffle_id") != 2)
    )
    assert sabot("audit", str(lines_without))[0] == 0  # from lines alone nobody could know
    code, lines = sabot("audit", str(lines_without), "--journal", str(changed))
    assert code == 5
    assert lines[-1]["wrong_in_general"][0] == "shuffle 2 is missing: no source has it"
    assert lines[-1]["files_verdict"] == "something does not fit: this is not what was written"


@pytest.mark.xdist_group("audit")
def test_a_journal_that_was_edited_proves_nothing(sabot: Sabot, session: Session, tmp_path: Path) -> None:
    """Every shuffle fits, and an event that tells of no shuffle was changed: ``audit`` exited with 0."""
    changed = tmp_path / "journal.db"
    changed.write_bytes(session.journal.read_bytes())
    with Journal(changed) as journal:
        journal._do("UPDATE events SET ticks_ms = ticks_ms + 1 WHERE id = 3", ())
    code, lines = sabot("audit", str(session.written()), "--journal", str(changed))
    assert code == 5
    assert [line["verdict"] for line in lines[:3]] == ["proved"] * 3
    assert lines[-1]["wrong_in_general"] == [
        "journal.db: CHANGED: link 3 is changed: its bytes do not give its hash"
    ]
    assert lines[-1]["ok"] is False


def test_lines_of_sabot_play_are_proved_faces_included(sabot: Sabot, tmp_path: Path) -> None:
    code, lines = sabot("play", "--device", "sim://", "--seed", "2", "--rounds", "4")
    assert code == 0
    told = tmp_path / "play.jsonl"
    told.write_text("\n".join(map(json.dumps, lines)))
    code, lines = sabot("audit", str(told), "--new-decks")
    assert code == 0
    proved = [line["faces"] for line in lines if line.get("verdict") == "proved"]
    assert proved[:2] == [21, 21]  # how far the machine is with later shuffles when the program ends is open


def test_a_device_is_asked_for_what_it_may_reveal(sabot: Sabot) -> None:
    url = "sim://asked?seed=4"
    assert sabot("fairness", "--shuffles", "2", "--device", url)[0] == 5
    code, lines = sabot("audit", "--device", url)
    assert code == 5  # this host kept no nonce of that session: it is not on disk
    assert wrong(lines)[0][1].startswith("no source has the")


def test_what_is_no_evidence_is_refused(sabot: Sabot, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"event": "shuffle_committed"}\n')
    code, lines = sabot("audit", str(bad))
    assert code == 1
    assert lines[-1]["error"] == "BadEvidence"
    assert "line 1" in lines[-1]["message"]
    assert sabot("audit", "--journal", str(bad))[0] == 1
    assert sabot("audit", str(tmp_path / "none"))[0] == 1
    assert sabot("audit")[0] == 2
    bad.write_text("")
    assert sabot("audit", str(bad))[0] == 5


# -- sabot rng -----------------------------------------------------------------------------------


def test_samples_are_exported_as_bits_or_bytes(sabot: Sabot, tmp_path: Path) -> None:
    out = tmp_path / "samples"
    asked = ["rng", "export", "--device", "sim://?seed=1", "--bytes", "300", "--out", str(out), "--source"]
    for source in ("noise", "generator"):
        code, lines = sabot(*asked, source)
        assert code == 0
        packed = out.read_bytes()
        assert lines[-1]["bytes"] == len(packed) == 300
        assert len(set(packed)) > 100
        sabot(*asked, source, "--one-a-byte")
        bits = out.read_bytes()
        assert set(bits) == {0, 1}
        assert bytes(int("".join(map(str, bits[at : at + 8])), 2) for at in range(0, 2400, 8)) == packed


def test_a_file_that_cannot_be_written_is_told(sabot: Sabot, tmp_path: Path) -> None:
    code, lines = sabot("rng", "export", "--device", "sim://", "--out", str(tmp_path / "no" / "file"))
    assert code == 1
    assert lines[-1]["error"] == "CannotWrite"
