"""Targets of the conformance suite: all emulated ones, or what ``--target`` names."""

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from _pytest.mark.structures import ParameterSet
from tests.conformance.table import Table
from tests.conformance.targets import EMULATED, NAMES, AtUrl, MicroPython, Target

from sabot_driver import Client

QUICK = "in-process"  # the target of ``make check``
NONE = "none"  # instead of a target, where none fits


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        action="append",
        help=f"run the conformance suite against: {', '.join(NAMES)}, or any URL of a device (repeatable)",
    )


def _fits(name: str, needs: set[str]) -> bool:
    """Whether a target has what a behaviour needs; it is not asked of one that has not."""
    kind: type[Target] = EMULATED.get(name, AtUrl)
    return all(getattr(kind, need) for need in needs)


def _cases(behaviour: str, fitting: list[str]) -> list[ParameterSet]:
    """A behaviour on each target that fits it.

    ``make check`` runs it in-process, ``make test`` every fourth one on one more target. Which ones and which
    target follow from the behaviour's name, so that each target meets its share. A behaviour that no device
    in-process can show always runs on another one. ``make test-full`` runs each on all.
    """
    others = [name for name in fitting if name != QUICK]
    number = crc32(behaviour.encode())
    chosen = others[number // 4 % len(others)] if others and (number % 4 == 1 or QUICK not in fitting) else ""
    marks = {QUICK: [], chosen: [pytest.mark.slow]}
    rest = [pytest.mark.slow, pytest.mark.full]
    return [pytest.param(each, marks=marks.get(each, rest)) for each in fitting]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        needs = {each for mark in metafunc.definition.iter_markers("needs") for each in mark.args}
        asked = metafunc.config.getoption("--target", None)
        fitting = [name for name in asked or NAMES if _fits(name, needs)]
        cases: list[ParameterSet]
        if asked:
            cases = [pytest.param(name) for name in fitting] or [pytest.param(NONE)]
        else:
            cases = _cases(metafunc.function.__name__, fitting)
        metafunc.parametrize("target", cases, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A behaviour that no target which was asked for can show is not asked of any."""
    left = [item for item in items if isinstance(item, pytest.Function) and _target_of(item) == NONE]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def _target_of(item: pytest.Function) -> object:
    return item.callspec.params.get("target") if hasattr(item, "callspec") else None


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """A new device."""
    name = request.param
    made: Target
    if name in EMULATED:
        if issubclass(EMULATED[name], MicroPython):
            request.getfixturevalue("micropython")  # skips where there is none
        marks = request.node.get_closest_marker("settings")
        made = EMULATED[name](tmp_path, marks.args[0] if marks is not None else "seed=1")
    else:
        made = AtUrl(tmp_path, name)
    yield made
    made.close()


@pytest.fixture
def client(target: Target, tmp_path: Path) -> Client:
    """Its owner, with a journal on disk."""
    return target.connect(journal=tmp_path / "journal.db")


@pytest.fixture
def table(target: Target, client: Client) -> Table:
    """A table with the floor at hand."""
    return Table(client)
