"""Modules marked ``both_kinds`` run their tests on the firmware here, then on both kinds, and compare."""

import pytest
from tests.machine import tables
from tests.machine.both_kinds import HEAP_BYTES, on_both

HERE, BOTH = "in-process", "micropython"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of a marked module, for each kind; not those that look inside the core."""
    marked = metafunc.definition.get_closest_marker("both_kinds") is not None
    if marked and metafunc.definition.get_closest_marker("looks_inside") is None:
        metafunc.fixturenames.append("firmware_kind")
        both = pytest.param(BOTH, marks=pytest.mark.slow)
        metafunc.parametrize("firmware_kind", [HERE, both], indirect=True)


@pytest.fixture
def firmware_kind(request: pytest.FixtureRequest) -> str:
    """Where the firmware runs; skips where there is no MicroPython."""
    kind: str = request.param
    if kind == BOTH:
        request.getfixturevalue("micropython")
    return kind


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test on both kinds and compare the two runs, if that is asked for."""
    if pyfuncitem.funcargs.get("firmware_kind") != BOTH:
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    assert 0 < on_both(tables, lambda: pyfuncitem.obj(**wanted)) <= HEAP_BYTES
    return True
