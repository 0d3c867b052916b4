"""The bad channel: whatever it does, a command happens once and an event is told once or named lost."""

from world import scenario

SEEDS = 60  # the whole campaign, 2,000 and more, is tests/protocol/test_lossy_campaign.py


def test_commands_once_and_events_once_or_named():
    for seed in range(SEEDS):
        try:
            scenario(seed)
        except Exception:
            print("seed", seed)
            raise
