"""The technician's page: who may, what it shows, and that a roller turns only while its button is held.

A roller turns one millimetre in a millisecond of the emulated machine. Its encoder therefore counts emulated
time, and nothing here depends on how fast this computer is.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.serve.page_client import PageClient
from tests.serve.served_table import EVERYBODY, ServedTable, served_table

from sabot_driver.credentials import Credential
from sabot_driver.jogging import LEASE_S, read_sensors
from sabot_protocol.host.messages import Part, Role
from sabot_serve.jog_desk import ARMED_S, PERMIT_S, JogDesk
from sabot_serve.machine_watch import MachineWatch
from sabot_serve.technician_view import AT, technician_view
from sabot_web.errors import Refused

pytestmark = pytest.mark.slow
LEASE_UM = int(LEASE_S * 1_000_000)
LATEST_UM = int(LEASE_UM * 1.06) + 20_000  # the fastest roller, and the time in which its order arrives
FEED = 0


def feed_um(table: ServedTable) -> int:
    return read_sensors(table.client, 20.0).rollers_um[FEED] or 0


def emulated_us(table: ServedTable) -> int:
    port: Any = table.client.loop.transport
    served = port.port.bench.served
    return int(served.call(lambda: served.device.machine.agenda.now_us))


def pass_time(table: ServedTable, ms: int) -> None:
    """Wait until the emulated machine is so much older."""
    ends = emulated_us(table) + ms * 1000
    table.wait(lambda found: emulated_us(found) >= ends)


def allowed(technician: PageClient, part: str = "feed", pin: str | None = None) -> Any:
    body = {
        "act_id": "technician-1",
        "seen": technician.table.snapshot()["newest_row"],
        "part": part,
        "credential": technician.credential("service", pin),
    }
    return technician.post("/api/jog/permit", body)


def pressed(technician: PageClient) -> tuple[str, str]:
    permit = allowed(technician).json()["permit"]
    answer = technician.post("/api/jog/press", {"permit": permit, "direction": 1})
    assert answer.status_code == 200, answer.text
    return permit, answer.json()["token"]


def renewed(technician: PageClient, permit: str, token: str) -> str:
    answer = technician.post("/api/jog/renew", {"permit": permit, "token": token})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])


def test_nothing_moves_before_the_first_renewal(machine: ServedTable, technician: PageClient) -> None:
    before = feed_um(machine)
    permit, token = pressed(technician)
    pass_time(machine, 50)
    assert feed_um(machine) == before
    renewed(technician, permit, token)
    machine.wait(lambda table: feed_um(table) > before)


def test_each_renewal_is_one_lease_and_silence_ends_it(machine: ServedTable, technician: PageClient) -> None:
    permit, token = pressed(technician)
    before = feed_um(machine)
    for _ in range(6):
        token = renewed(technician, permit, token)
        pass_time(machine, 60)  # less than a lease
    last = feed_um(machine)
    assert last - before > LEASE_UM, "six renewals turn longer than one lease"
    pass_time(machine, 600)  # the page is closed, or its link is lost: nobody renews
    stands = feed_um(machine)
    assert 0 < stands - last <= LATEST_UM
    pass_time(machine, 300)
    assert feed_um(machine) == stands
    late = technician.post("/api/jog/renew", {"permit": permit, "token": token})
    assert (late.status_code, late.json()["error"]) == (409, "jog_over")
    pass_time(machine, 300)
    assert feed_um(machine) == stands


def test_release_stops_at_once_and_nothing_after_it_turns(
    machine: ServedTable, technician: PageClient
) -> None:
    permit, token = pressed(technician)
    token = renewed(technician, permit, token)
    assert technician.post("/api/jog/release", {"permit": permit}).status_code == 200
    stands = feed_um(machine)
    assert technician.post("/api/jog/renew", {"permit": permit, "token": token}).status_code == 409
    pass_time(machine, 400)
    assert feed_um(machine) == stands


def test_a_token_counts_once(machine: ServedTable, technician: PageClient) -> None:
    permit, token = pressed(technician)
    renewed(technician, permit, token)
    assert technician.post("/api/jog/renew", {"permit": permit, "token": token}).status_code == 409
    pass_time(machine, 20)
    stands = feed_um(machine)
    pass_time(machine, 400)
    assert feed_um(machine) == stands, "an old renewal ends the hold"


def test_a_permit_needs_the_technician_and_belongs_to_one_page(
    machine: ServedTable, technician: PageClient
) -> None:
    wrong = allowed(technician, pin="0001")
    assert wrong.status_code == 401
    dealer = technician.post(
        "/api/jog/permit",
        {
            "act_id": "technician-2",
            "seen": 0,
            "part": "feed",
            "credential": {"person": "dealer", "pin": machine.pin("dealer"), "role": "service"},
        },
    )
    assert dealer.status_code == 403
    assert not machine.rows("jog")
    permit = allowed(technician).json()["permit"]
    assert [each.row.data["part"] for each in machine.rows("jog")] == ["feed"]
    assert machine.rows("jog")[0].row.actor.person == "service"
    with PageClient(machine) as other:
        other.enter()
        stolen = other.post("/api/jog/press", {"permit": permit, "direction": 1})
        assert (stolen.status_code, stolen.json()["error"]) == (403, "no_permit")
    for body in (
        {"permit": permit, "direction": 0},
        {"permit": permit},
        {"permit": permit, "direction": "1"},
    ):
        assert technician.post("/api/jog/press", body).status_code == 400
    without_csrf = technician.http.post("/api/jog/press", json={"permit": permit, "direction": 1})
    assert without_csrf.status_code == 403


def test_an_axis_goes_one_step_and_is_bounded(machine: ServedTable, technician: PageClient) -> None:
    permit = allowed(technician, "elevator").json()["permit"]
    assert technician.post("/api/jog/move", {"permit": permit, "amount": 25_001}).status_code == 400
    assert technician.post("/api/jog/press", {"permit": permit, "direction": 1}).status_code == 400
    assert technician.post("/api/jog/move", {"permit": permit, "amount": 5000}).status_code == 200
    machine.wait(lambda table: not level(table, "elevator_home") and level(table, "elevator"))


def level(table: ServedTable, name: str) -> bool:
    return bool(next(each.level for each in read_sensors(table.client, 20.0).sensors if each.name == name))


def test_times_of_the_desk(machine: ServedTable, technician: PageClient) -> None:
    now = [100.0]
    desk = JogDesk(machine.client, lambda: now[0])
    key: Credential = machine.shown.keys["service"]
    assert key.role is Role.SERVICE
    permit = desk.allow("page", Part.FEED, key)
    token = desk.press("page", permit, 1)
    now[0] += ARMED_S + 0.01
    before = feed_um(machine)
    with pytest.raises(Refused, match="too late"):
        desk.renew("page", permit, token)
    pass_time(machine, 50)
    assert feed_um(machine) == before
    now[0] += PERMIT_S
    with pytest.raises(Refused, match="the permit is over"):
        desk.press("page", permit, 1)
    permit = desk.allow("page", Part.FEED, key)
    desk.forbid()
    with pytest.raises(Refused, match="may jog nothing"):
        desk.press("page", permit, 1)


def test_calibration_is_set_undone_and_on_record(machine: ServedTable, technician: PageClient) -> None:
    watch = MachineWatch(machine.client)
    assert calibrated(watch) == (300, None)
    done = technician.act(
        "calibrate", credential=technician.credential("service"), what="card_um", value=303, was=300
    )
    assert done.status_code == 200
    settles(machine, watch, (303, 300))
    technician.act(
        "calibrate", credential=technician.credential("service"), what="card_um", value=300, was=303
    )
    settles(machine, watch, (300, 303))
    assert [each.row.data["value"] for each in machine.rows("calibrate")] == [303, 300]
    assert technician.act("calibrate", what="card_um", value=301, was=300).status_code in (401, 403)


def settles(machine: ServedTable, watch: MachineWatch, wanted: tuple[int, int | None]) -> None:
    def there(_: ServedTable) -> bool:
        watch._slow_s = 0.0  # what changes seldom is read again at once
        return calibrated(watch) == wanted

    machine.wait(there)


def calibrated(watch: MachineWatch) -> tuple[int, int | None]:
    found = next(each for each in watch.read()["calibration"] if each["name"] == "card_um")
    return found["value"], found["before"]


def test_the_view_has_every_sensor_once(machine: ServedTable, technician: PageClient) -> None:
    snapshot = {**machine.snapshot(), "machine": MachineWatch(machine.client).read()}
    view = technician_view(snapshot)
    named = [sensor["name"] for place in view["places"] for sensor in place["sensors"]]
    assert sorted(named) == sorted(each["name"] for each in snapshot["machine"]["sensors"])
    assert len(named) == len(set(named)) == sum(len(names) for names in AT.values())
    assert view["device"]["in_service"]
    assert view["acts"]["begin_service"] is None
    assert {name for name, button in view["acts"].items() if button} == {"end_service", "calibrate", "jog"}
    assert all(button["credential"] for button in view["acts"].values() if button)
    assert view["motion"]["rollers_um"] == snapshot["machine"]["rollers_um"]
    assert {each["name"] for each in view["calibration"]} == {"card_um", "blade_um"}
    unanswered = technician_view(machine.snapshot())
    assert unanswered["wear"] == unanswered["faults"] == []


def test_the_device_is_asked_only_while_somebody_looks(machine: ServedTable, technician: PageClient) -> None:
    views = machine.service.app.views
    assert "machine" not in views.snapshot
    stream = technician.events("service")
    seen: list[Any] = []
    for kind, _, data in stream:
        if kind == "change":
            seen.append(data["parts"])
        if any(each.get("wear") for each in seen):
            break
    stream.close()
    assert "machine" in views.snapshot


def test_faults_and_times_come_from_the_journal(tmp_path: Path) -> None:
    with served_table(tmp_path, "seed=1&fault=stuck@exit:60", simulated=EVERYBODY) as table:
        table.wait(lambda found: bool(found.rows("fault_cleared")))
        table.wait(lambda found: len(found.rows("settle")) >= 2)
        read = MachineWatch(table.client).read()
    (fault,) = read["faults"]
    assert fault["place"] in ("exit", "deal")
    assert fault["cleared_s"] is not None
    assert [each["roller"] for each in read["trends"]] == ["feed", "insert", "deal"]
    for each in read["trends"][:2]:
        assert each["points"]
        assert all(0 < mean < 1000 and spread < mean for mean, spread in each["points"])
    assert read["tested"]["shoe"] is True


def test_only_the_technicians_own_stream_has_it(technician: PageClient) -> None:
    kind, _, data = next(technician.events("table"))
    assert kind == "change"
    assert "machine" not in data["parts"]
    assert technician.http.get("/service").status_code == 200


def test_a_reader_hears_beats_although_the_machine_is_asked_all_the_time(technician: PageClient) -> None:
    kinds: list[str] = []
    for kind, _, _ in technician.events("service"):
        kinds.append(kind)
        if kinds.count("beat") == 2:
            break
    assert kinds[0] == "change"


def test_without_a_link_service_is_refused_with_the_link_as_the_reason(machine: ServedTable) -> None:
    with PageClient(machine) as technician:
        technician.enter()
        machine.pull_cable()
        machine.wait(lambda table: not table.snapshot()["device"]["up"])
        refused = technician.act("begin_service", credential=technician.credential("service"))
        assert refused.status_code == 409
        assert "the link to the device is down" in refused.json()["message"]
    assert not machine.rows("begin_service")
