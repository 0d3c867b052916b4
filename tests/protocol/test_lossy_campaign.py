"""The bad channel, at length: at least 2,000 seeded runs; and what happens beyond what the link can bear."""

from collections.abc import Callable

import pytest
import world
from tests.sweeps import Amount

from sabot_protocol import event_store, handshake, host_protocol, ledger, link
from sabot_protocol.notifications import Notification, RequestAnswered, RequestFailed, SessionDown

pytestmark = pytest.mark.slow

RUNS = 2400
BATCH = 100


@pytest.mark.sweep(every=12, full=2)
@pytest.mark.parametrize("first", range(0, RUNS, BATCH))
def test_commands_once_and_events_once_or_named(first: int) -> None:
    for seed in range(first, first + BATCH):
        try:
            world.scenario(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_the_campaign_meets_every_kind_of_trouble(amount: Amount) -> None:
    """The model is worth what it exercises: repeats, interruptions, gaps and reconnects all happen."""
    times = amount(1, full=3)
    worlds = [world.scenario(seed) for seed in range(100 * times)]
    ends = [outcome for each in worlds for outcome in each.outcomes.values()]
    assert ends.count("interrupted") > 6 * times
    assert ends.count("done") > 330 * times
    assert sum(each.reboots for each in worlds) > 33 * times
    assert sum(len(each.downs) for each in worlds) > 6 * times
    assert sum(each.port.diagnostics.repeats for each in worlds if each.port) > 3 * times
    assert sum(each.host.diagnostics.retransmitted for each in worlds) > 160 * times
    sizes = {gap.size is None for each in worlds for gap in each.gaps}
    assert sizes == {False}
    assert {gap.reason for each in worlds for gap in each.gaps} == {1, 2}


NAMED_ENDS = {link.RETRIES_EXHAUSTED, link.PEER_SILENT, handshake.NO_ANSWER}
TIMEOUT_MS = 8000
# From connect: a whole handshake of two repeated messages, then the link's own silence.
BOUND_MS = 2 * 20_000 + link.SILENCE_MS + link.MAX_SENDS * link.MAX_RTO_MS


@pytest.mark.parametrize("loss", [300_000, 500_000, 800_000, 1_000_000])
def test_beyond_its_losses_at_most_once_and_a_named_end(loss: int) -> None:
    ended_by_name = 0
    for seed in range(60):
        broken = world.World(seed, loss=loss, repeat=100_000, bit_error=100, delay_ms=5)
        broken.reconnects = False
        now = broken.now
        body = [world.DISPENSE.pack((task, 1)) for task in range(1, 9)]
        asked = {broken.host.request(world.DISPENSE.id, each, now, TIMEOUT_MS): 0 for each in body}
        happened: list[Notification] = []

        def watched(
            take: Callable[[], list[Notification]] = broken.host.take_notifications,
            into: list[Notification] = happened,
        ) -> list[Notification]:
            into += take()
            return []

        broken.host.take_notifications = watched  # type: ignore[method-assign]
        broken.run(TIMEOUT_MS + 1000)
        for each in happened:
            if isinstance(each, RequestAnswered | RequestFailed):
                asked[each.request_id] += 1
        assert set(asked.values()) == {1}, "every request ends, once, within its time"
        answered = [each for each in happened if isinstance(each, RequestAnswered)]
        assert all(times == 1 for times in broken.executed.values()), "at most once"
        assert len(broken.executed) >= len([each for each in answered if each.status == 0])
        broken.run(BOUND_MS)
        downs = [each.reason for each in happened if isinstance(each, SessionDown)]
        assert set(downs) <= NAMED_ENDS
        ended_by_name += bool(downs)
        if loss == 1_000_000:
            assert downs == [handshake.NO_ANSWER]
    if loss >= 800_000:
        assert ended_by_name == 60


def many() -> None:
    for seed in range(300):
        world.scenario(seed)


def test_the_model_would_notice_a_ledger_that_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger.Ledger, "state_of", lambda *_: ledger.NEW)
    with pytest.raises(AssertionError, match="2 times"):
        many()


def test_the_model_would_notice_a_gap_kept_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_store.EventStore, "_made_since", lambda *_: 0)
    with pytest.raises(AssertionError, match="lost without a word"):
        many()


def test_the_model_would_notice_a_wrong_gap_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_store.EventStore, "_made_since", lambda *_: 1)
    with pytest.raises(AssertionError, match="gap says"):
        many()


def test_the_model_would_notice_a_command_resent_after_a_reboot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_protocol, "RESOLVE", 0)
    monkeypatch.setattr(ledger.Ledger, "_find", lambda *_: None)
    monkeypatch.setattr(ledger.Ledger, "newest", lambda *_: 0)
    with pytest.raises(AssertionError, match="2 times"):
        many()
