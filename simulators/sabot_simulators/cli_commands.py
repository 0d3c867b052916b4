"""The commands that the simulators add to ``sabot``, by entry points of the group ``sabot.commands``."""

from sabot_cli.lazy_command import LazyCommand

SIMULATE = LazyCommand("sabot_simulators.endpoints.simulate", "Serve an emulated device, and print its URL.")
FAIRNESS = LazyCommand("sabot_simulators.fairness.command", "Test the order that shuffled cards really have.")
