"""One seed replays the whole system; a sample of seeds finds nothing, and planted defects are found."""

from dataclasses import replace

import pytest
from tests.sweeps import Amount

from sabot_simulators.whole_system.planted import PLANTS
from sabot_simulators.whole_system.run import run
from sabot_simulators.whole_system.scenario import Trouble, draw
from sabot_simulators.whole_system.shrink import Shrinker, tell


@pytest.mark.slow
def test_one_seed_replays_everything() -> None:
    scenario = draw(7, minutes=1)
    first, second = run(scenario), run(scenario)
    assert first.trace == second.trace
    assert first.story == second.story
    assert any("trouble" in line for line in first.story)
    assert first.problems == []
    assert first.events
    assert first.claims


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 13))
def test_nothing_is_wrong(seed: int) -> None:
    result = run(draw(seed, minutes=6, weeks=False))
    assert result.problems == [], "\n".join(result.story[-60:])
    assert result.events
    assert result.claims


@pytest.mark.slow
def test_an_event_acknowledged_before_it_is_written_is_found_and_shrunk_to_a_short_story(
    amount: Amount,
) -> None:
    scenario = draw(3, minutes=1)
    with PLANTS["acknowledged-before-written"][1]():
        found = run(scenario)
        assert any("was acknowledged" in problem for problem in found.problems)
        shrinker = Shrinker(found, tries=amount(1, full=4))
        smallest = shrinker.shrink(replace(scenario, troubles=scenario.troubles[:1], faults=()))
    assert smallest.parts() == []
    assert "was acknowledged" in tell(smallest, shrinker.result)


@pytest.mark.slow
@pytest.mark.full
def test_hours_without_a_host() -> None:
    hours = 6
    result = run(replace(draw(2, minutes=1), days_alone=hours / 24, troubles=(), faults=()))
    assert result.problems == []
    assert result.virtual_s > hours * 3600


@pytest.mark.slow
@pytest.mark.full
def test_a_journal_that_is_not_synchronised_is_found_by_a_loss_of_power() -> None:
    outages = tuple(Trouble(40.0 + 30 * n, "computer_loses_power", 5.0) for n in range(3))
    scenario = replace(draw(1, minutes=2), faults=(), troubles=outages)
    assert run(scenario).problems == []
    with PLANTS["journal-not-synchronised"][1]():
        assert run(scenario).problems


@pytest.mark.slow
@pytest.mark.sweep(every=12)
@pytest.mark.parametrize("seed", range(1, 13))
def test_a_table_that_people_run_through_the_session(seed: int, amount: Amount) -> None:
    result = run(replace(draw(seed, minutes=amount(2, full=4), weeks=False), session=True))
    assert result.problems == [], "\n".join(result.story[-60:])
    assert result.events


@pytest.mark.slow
@pytest.mark.full
def test_a_record_that_is_not_synchronised_is_found_by_a_loss_of_power() -> None:
    outages = tuple(Trouble(20.0 + 13 * n, "computer_loses_power", 3.0) for n in range(8))
    scenario = replace(draw(1, minutes=2), faults=(), troubles=outages, session=True)
    assert run(scenario).problems == []
    with PLANTS["record-not-synchronised"][1]():
        assert run(scenario).problems
