"""The board's own way to count lag_test, in machine code, gives what the portable one gives."""

import os
import subprocess
from pathlib import Path

CHECK = """
from sabot_firmware.rng import lag_test
from sabot_firmware.boards.rp2040.noise import count_differing
data = bytearray([(i * 37 + (i >> 2)) & 255 for i in range(137)])
for lag in range(1, 65):
    assert count_differing(data, 137, lag) == lag_test.count_differing(data, 137, lag), lag
print("same")
"""


def test_viper_counts_as_the_portable_way_does(micropython: str, tmp_path: Path, root: Path) -> None:
    (tmp_path / "machine.py").write_text("mem32 = {}\n\n\nclass ADC:\n    pass\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(root / "protocol"), str(root / "firmware"), ".frozen"])
    ran = subprocess.run(
        [micropython, "-c", CHECK],
        env={**os.environ, "MICROPYPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "same", ran.stderr
