"""A PostgreSQL server of this test, on a socket in its own folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONG_S = 60.0


def programs() -> Path | None:
    """The folder with initdb and postgres; None if PostgreSQL is not installed."""
    beside = Path(shutil.which("pg_dump") or "/none").parent
    found = [beside, *sorted(Path("/usr/lib/postgresql").glob("*/bin"))]
    return next((each for each in reversed(found) if (each / "initdb").exists()), None)


def _as_user() -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


@contextmanager
def postgresql(where: Path) -> Iterator[str]:
    """Start a server; the URL of its database."""
    folder = Path(tempfile.mkdtemp(prefix="sabot-pg-"))
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
    data = folder / "data"
    quick = ["-A", "trust", "-U", "postgres", "--no-sync", "-D", str(data)]
    subprocess.run([*_as_user(), str(where / "initdb"), *quick], check=True, capture_output=True, cwd=folder)
    words = [str(where / "postgres"), "-D", str(data), "-k", str(folder), "-c", "listen_addresses="]
    process = subprocess.Popen(
        [*_as_user(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
    )
    try:
        ready = [str(where / "pg_isready"), "-h", str(folder), "-q"]
        ends = time.monotonic() + LONG_S
        while subprocess.run(ready, check=False).returncode != 0:
            assert time.monotonic() < ends, "PostgreSQL does not answer"
            time.sleep(0.1)
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        process.terminate()
        process.wait(LONG_S)
        shutil.rmtree(folder, ignore_errors=True)
