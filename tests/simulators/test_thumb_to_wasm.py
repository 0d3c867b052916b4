"""The compiler of the emulated Pico, as far as it can be tested without an image."""

import shutil
import subprocess

import pytest

from sabot_simulators.rp2040.pico import HERE

NODE = shutil.which("node")


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_compiler_passes_its_own_tests() -> None:
    command = [str(NODE), "--test", str(HERE / "thumb_to_wasm" / "tests" / "compiler.test.mjs")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
