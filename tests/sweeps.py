"""Sweeps: tests of very many cases, of which ``make test`` runs a fixed sample and ``make test-full`` all.

A parametrized test is a sweep by its mark, and every n-th of its cases is the sample::

    @pytest.mark.sweep(every=8)
    @pytest.mark.parametrize("row", rows())
    def test_a_row(row): ...

A case that only ``make test-full`` runs, because smaller ones of the same test show the same, is marked
``pytest.param(6, marks=pytest.mark.full)``.

A test that loops asks the fixture ``amount`` how far to go::

    def test_many(amount):
        for seed in range(amount(20, full=400)): ...

A portable test, which also runs on MicroPython and knows no fixture, cuts the power at every
``CUT_EVERY``-th step.

A property that hypothesis tries is a sweep too: 10 examples, always the same, in the sample; 50, always
others, in full; 500 in a campaign.

Where many cases show the same, a full run has only some of them too, and a campaign has all::

    @pytest.mark.sweep(every=61, full=4)
    amount(20, full=100, campaign=400)

``--sweeps`` chooses: ``sample`` (the default), ``full``, ``rest`` or ``campaign``. ``rest`` is all of
``full`` that ``sample`` leaves out: the cases outside the sample, and tests that loop or try examples, at
full length.
"""

import os
from collections import defaultdict

import pytest
from hypothesis import settings

SAMPLE, FULL, REST, CAMPAIGN = "sample", "full", "rest", "campaign"


settings.register_profile(SAMPLE, deadline=None, max_examples=10, derandomize=True)
settings.register_profile(FULL, deadline=None, max_examples=50)  # no test depends on the machine's speed
settings.register_profile(CAMPAIGN, deadline=None, max_examples=500)
settings.load_profile(SAMPLE)


class Amount:
    """How much of a sweep this run does."""

    def __init__(self, chosen: str) -> None:
        self.full = chosen != SAMPLE
        self._campaign = chosen == CAMPAIGN

    def __call__(self, sample: int, *, full: int, campaign: int | None = None) -> int:
        """``sample`` in ``make test``, ``full`` in ``make test-full``, ``campaign`` with SWEEPS=campaign."""
        if self._campaign and campaign is not None:
            return campaign
        return full if self.full else sample


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--sweeps``."""
    parser.addoption(
        "--sweeps",
        choices=(SAMPLE, FULL, REST, CAMPAIGN),
        default=SAMPLE,
        help="how much of the sweeps to run: a fixed sample, all, what the sample leaves out, or a campaign",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have hypothesis try a fixed sample of examples, or all."""
    chosen = config.getoption("--sweeps")
    settings.load_profile(FULL if chosen == REST else chosen)
    os.environ["SABOT_SWEEPS"] = chosen  # the portable tests know no pytest


def _grows(item: pytest.Item) -> bool:
    """Whether a test itself goes further in a full run."""
    test = getattr(item, "obj", None)
    tried = getattr(test, "is_hypothesis_test", False)
    names = getattr(getattr(test, "__code__", None), "co_names", ())
    cuts = "CUT_EVERY" in names or "CUT_EVERY_DEARLY" in names
    return tried or cuts or "amount" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what this run leaves out."""
    chosen = config.getoption("--sweeps")
    if chosen == CAMPAIGN:
        return
    seen: dict[str, int] = defaultdict(int)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        mark = item.get_closest_marker("sweep")
        sampled, in_full = item.get_closest_marker("full") is None, True
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            sampled = seen[name] % int(mark.kwargs["every"]) == 0
            in_full = sampled or seen[name] % int(mark.kwargs.get("full", 1)) == 0
            seen[name] += 1
        wanted = {SAMPLE: sampled, FULL: in_full, REST: in_full and (not sampled or _grows(item))}[chosen]
        (kept if wanted else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture(scope="session")
def amount(request: pytest.FixtureRequest) -> Amount:
    """How far a test that loops goes: ``amount(20, full=400)``."""
    return Amount(request.config.getoption("--sweeps"))
