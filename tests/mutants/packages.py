"""The packages whose tests are measured, and which of their files are mutated."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CODE_FOLDERS = ("protocol", "firmware", "host_driver", "simulators")
MUTATED = {
    "sabot_driver": ("host_driver/sabot_driver/*.py",),
    "sabot_protocol": ("protocol/sabot_protocol/*.py", "protocol/sabot_protocol/host/*.py"),
    "sabot_table": (
        "host_driver/sabot_table/*.py",
        "host_driver/sabot_table/odds/*.py",
        "host_driver/sabot_table/wagers/*.py",
    ),
    "sabot_firmware": ("firmware/sabot_firmware/*.py", "firmware/sabot_firmware/rng/*.py"),
}
LEFT_OUT = {
    "protocol/sabot_protocol/meanings.py",  # sentences of the protocol page
    "protocol/sabot_protocol/schema_hash.py",  # generated
    "protocol/sabot_protocol/sensors.py",  # generated
    "protocol/sabot_protocol/schema.py",  # a table; tests compare all its numbers with generated files
    "protocol/sabot_protocol/host/messages.py",  # the same table with types; a test compares the two
}
TESTS_LEFT_OUT = ("board", "bench", "mutants")  # an image on an emulated Pico, measurements, this runner
SAMPLE = 200


def mutated_files(package: str) -> list[str]:
    """Paths of a package's files, relative to the checkout."""
    found = {path for pattern in MUTATED[package] for path in ROOT.glob(pattern)}
    return sorted({path.relative_to(ROOT).as_posix() for path in found} - LEFT_OUT)


def all_mutated_files() -> list[str]:
    """The files of all packages."""
    return sorted(path for package in MUTATED for path in mutated_files(package))


def test_files() -> list[str]:
    """Paths of the test modules that may kill a mutant, relative to the checkout."""
    found = [path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    return [path.as_posix() for path in found if path.parts[1] not in TESTS_LEFT_OUT]
