"""One seed: the whole system played, checked, and what was found."""

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from sabot_simulators.chips import PowerCut
from sabot_simulators.stubs.stubbed_chip import FirmwareFailed
from sabot_simulators.whole_system import checks
from sabot_simulators.whole_system.people import Table
from sabot_simulators.whole_system.scenario import Scenario
from sabot_simulators.whole_system.session_table import SessionTable
from sabot_simulators.whole_system.sqlite_vfs import installed
from sabot_simulators.whole_system.world import WholeSystem


@dataclass
class Result:
    """What came of one scenario."""

    seed: int
    problems: list[str]
    story: list[str] = field(repr=False)
    trace: str
    virtual_s: float
    alone_s: float
    processor_s: float
    rounds: int
    claims: int
    events: int
    commands: int
    power_cuts: int
    program_starts: int
    stops: int
    gave_up: int
    excused: int

    @property
    def kinds(self) -> set[str]:
        """The problems without times and numbers."""
        return {kind_of(each) for each in self.problems}


def kind_of(problem: str) -> str:
    """A problem without its time and its numbers."""
    text = problem.split(" s: ", 1)[1]
    return " ".join("#" if any(letter.isdigit() for letter in word) else word for word in text.split())


def run(scenario: Scenario) -> Result:
    """Play a scenario and check everything."""
    began = time.process_time()
    with installed(Random(f"{scenario.seed}/sqlite")) as files, tempfile.TemporaryDirectory() as folder:
        world = WholeSystem(scenario, files, Path(folder))
        table = SessionTable(world, Path(folder)) if scenario.session else Table(world)
        try:
            world.provision()
            table.play()
            try:
                checks.settle(world)
            except PowerCut:
                world.wait_for_power()
                checks.settle(world)
            if isinstance(table, SessionTable):
                table.finish()
                table.check()
            checks.check_all(world)
        except FirmwareFailed as error:
            world.problem(f"the board's program ended: {error}")
        finally:
            world.close()
    alone_s = scenario.days_alone * 86_400
    return Result(
        scenario.seed, world.problems, world.story, world.trace(),
        world.machine.agenda.now_us / 1e6, alone_s, time.process_time() - began,
        table.rounds, world.oracle.claims, sum(len(life.emitted) for life in world.truth.lives),
        sum(each.done for each in world.truth.executions), world.power_cuts,
        sum(pc.starts for pc in world.pcs), table.stops, table.gave_up,
        sum(wrong.unseen is not None for wrong in world.oracle.wrong),
    )  # fmt: skip
