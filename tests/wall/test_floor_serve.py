"""``sabot floor serve``, as a person calls it."""

import json
import os
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.plain_http import NO_TLS
from tests.wall.spoken_floor import SpokenFloor
from tests.warm_start import WarmPopen, warm_run

from sabot_cli.main import run

pytestmark = pytest.mark.slow

WAIT_S = 60


def test_it_serves_until_it_is_ended_and_a_second_one_asks_for_a_new_address(
    spoken: SpokenFloor, tmp_path: Path, archive: Path
) -> None:
    words = ["floor", "serve", "--site", spoken.site, "--server", spoken.servers.urls[0], "--port", "0"]
    words += ["--archive", str(archive), "--metrics-port", "0", "--demonstration", "--json"]
    home = {**os.environ, "SABOT_HOME": str(tmp_path / "home")}
    spoken.tables(["t07"])
    served = WarmPopen(words, stdout=subprocess.PIPE, text=True, env=home)
    try:
        assert served.stdout is not None
        told = json.loads(served.stdout.readline())
        assert set(told["people"]) == {"floor", "service"}
        metrics = httpx.get(told["metrics"], verify=NO_TLS).text
        assert "sabot_wall_connected" in metrics
        second = warm_run(words, env=home, timeout=WAIT_S)
        assert second.returncode == 6
        again = json.loads(second.stdout)
        assert (again["address"], again["pid"]) == (told["address"], served.pid)
        for enter in (told["enter"], again["enter"]):
            address, _, token = enter.partition("/enter#")
            with httpx.Client(base_url=address, headers={"Origin": address}, verify=NO_TLS) as browser:
                assert browser.post("/api/enter", json={"token": token}).status_code == 200
                assert browser.get("/api/rounds").json()["rounds"]
                assert browser.post("/api/enter", json={"token": token}).status_code == 403
    finally:
        served.send_signal(signal.SIGTERM)
        served.wait(WAIT_S)
        served.stdout and served.stdout.close()
    assert served.returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--certificate"),
        (["--archive", "none.db"], "unable to open database file"),
        (["--site", "Bad Site"], "letters a-z"),
    ],
)
def test_what_cannot_be_served_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SABOT_HOME", str(tmp_path / "home"))
    assert run(["floor", "serve", "--site", "harbour", "--port", "0", *words]) == 1
    assert said in capsys.readouterr().err
