"""What each kind of trouble does to the system, and how it ends."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sabot_simulators.whole_system.cable import Quality
from sabot_simulators.whole_system.scenario import Trouble

if TYPE_CHECKING:
    from sabot_simulators.whole_system.world import WholeSystem

LOSES, DAMAGES, REPEATS = 0.15, 0.1, 0.1
SLOW_CABLE_US = (20_000, 900_000)
SLOW_DISK_US = (50_000, 3_000_000)
ATTACK_EVERY_US = 300_000
NOISE_BYTES = 80
SECOND_US = 1_000_000


class Troubles:
    """Lets the troubles of a scenario happen to a system."""

    def __init__(self, world: "WholeSystem") -> None:
        self._world = world
        self._agenda = world.machine.agenda
        self.over = False
        """The quiet end: nothing begins any more."""
        self._begin: dict[str, Callable[[Trouble], None]] = {
            "cable_pulled": lambda trouble: world.pull_usb(),
            "cable_loses": lambda trouble: self._quality(Quality(loses=LOSES)),
            "cable_damages": lambda trouble: self._quality(Quality(damages=DAMAGES)),
            "cable_repeats": lambda trouble: self._quality(Quality(repeats=REPEATS)),
            "cable_slow": lambda trouble: self._quality(Quality(delay_us=SLOW_CABLE_US)),
            "attacker_noise": self._attack,
            "attacker_replays": self._attack,
            "program_killed": self._kill,
            "program_stopped": self._stop,
            "computer_loses_power": self._computer_off,
            "computer_loses_power_in_a_write": self._computer_off_later,
            "computer_clock": self._clock,
            "disk_slow": lambda trouble: self._disk(slow_us=SLOW_DISK_US),
            "disk_full": lambda trouble: self._disk(full=True),
            "disk_fails": lambda trouble: self._disk(failing=True),
            "disk_locked": self._lock,
            "power_cut": self._power_cut,
            "power_cut_in_a_record": self._power_cut_in_a_record,
            "observer_pulled": lambda trouble: world.uart.pull(),
        }
        self._end: dict[str, Callable[[Trouble], None]] = {
            "cable_pulled": lambda trouble: world.plug_usb(),
            "program_killed": self._start,
            "program_stopped": self._start,
            "computer_loses_power": self._start,
            "computer_loses_power_in_a_write": self._computer_on_later,
            "computer_clock": self._clock_right,
            "disk_slow": lambda trouble: self._disk(slow_us=None),
            "disk_full": lambda trouble: self._disk(full=False),
            "disk_fails": lambda trouble: self._disk(failing=False),
            "power_cut": lambda trouble: world.power_on(),
            "observer_pulled": lambda trouble: world.uart.plug(),
        }
        for kind in ("cable_loses", "cable_damages", "cable_repeats", "cable_slow"):
            self._end[kind] = lambda trouble: self._quality(Quality())
        for trouble in world.scenario.troubles:
            self._agenda.at(round(trouble.at_s * SECOND_US), self._strike, trouble)

    def _strike(self, trouble: Trouble) -> None:
        if self.over:
            return
        self._world.note(f"trouble {trouble.kind} for {trouble.lasts_s} s")
        self._begin[trouble.kind](trouble)
        self._agenda.after(round(trouble.lasts_s * SECOND_US), self._stop_it, trouble)

    def _stop_it(self, trouble: Trouble) -> None:
        end = self._end.get(trouble.kind)
        if end is not None:
            self._world.note(f"over: {trouble.kind}")
            end(trouble)

    def _quality(self, quality: Quality) -> None:
        self._world.usb.quality = quality
        self._world.uart.quality = quality

    def _disk(self, **values: object) -> None:
        for name, value in values.items():
            setattr(self._world.pc.disk, name, value)

    def _lock(self, trouble: Trouble) -> None:
        self._world.pc.disk.locked_until_us = self._agenda.now_us + round(trouble.lasts_s * SECOND_US)

    # -- the attacker ---------------------------------------------------------------------------

    def _attack(self, trouble: Trouble) -> None:
        self._attack_again((trouble, self._agenda.now_us + round(trouble.lasts_s * SECOND_US)))

    def _attack_again(self, attack: tuple[Trouble, int]) -> None:
        trouble, ends_us = attack
        if self.over or self._agenda.now_us >= ends_us:
            return
        world = self._world
        cable = (world.usb, world.uart)[trouble.amount % 2]
        if trouble.kind == "attacker_replays":
            cable.replay()
        else:
            cable.inject(world.random.randbytes(world.random.randrange(1, NOISE_BYTES)))
        self._agenda.after(ATTACK_EVERY_US, self._attack_again, attack)

    # -- the computer ---------------------------------------------------------------------------

    def _kill(self, trouble: Trouble) -> None:
        self._world.pc.held_off = True
        self._world.pc.kill()

    def _stop(self, trouble: Trouble) -> None:
        self._world.pc.held_off = True
        self._world.pc.stop()

    def _computer_off(self, trouble: Trouble) -> None:
        self._world.pc.held_off = True
        self._world.pc.power_off()

    def _computer_off_later(self, trouble: Trouble) -> None:
        self._world.pc.disk.fails_after = trouble.amount % 12

    def _computer_on_later(self, trouble: Trouble) -> None:
        self._world.pc.disk.fails_after = None
        self._start(trouble)

    def _start(self, trouble: Trouble) -> None:
        self._world.pc.held_off = False
        self._world.pc.start()

    def _clock(self, trouble: Trouble) -> None:
        self._world.pc.clock_wrong_by_s = trouble.amount

    def _clock_right(self, trouble: Trouble) -> None:
        self._world.pc.clock_wrong_by_s = 0

    # -- the board ------------------------------------------------------------------------------

    def _power_cut(self, trouble: Trouble) -> None:
        self._world.cut_power()

    def _power_cut_in_a_record(self, trouble: Trouble) -> None:
        self._world.board.fram.cut_after = trouble.amount
