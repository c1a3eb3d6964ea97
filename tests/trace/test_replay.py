"""A recorded run is run again and is the same; whatever was changed in it is found."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from contesting import contest
from msgspec.structs import replace
from playing import Player
from recordings import (
    Tape,
    ask,
    in_service,
    node,
    records,
    register,
    rewrite,
    simulate,
    submit,
)

from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.context.unit_of_work import UnitOfWork
from yunikorn_actors.machines.machine import Effect, Send
from yunikorn_actors.machines.scheduler import Scheduler
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.scheduling import ReportWaiting, RunCycle
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.runtime.scheduler_core import CoreDriver
from yunikorn_actors.state import facts as f
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import Extent, ReplayOutcome, replay

Record = dict[str, Any]


def replayed(path: Path) -> ReplayOutcome:
    with TraceReader(path) as trace:
        return replay(trace)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def types_in(path: Path) -> set[str]:
    return {record["type"] for record in records(path) if record["record"] == "delivery"}


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_simulated_run_is_repeated(path: Path, topology: TopologyName, seed: int) -> None:
    simulate(path, topology, seed)
    outcome = replayed(path)
    count = len(records(path)) - 2
    mailboxes = {record["mailbox"] for record in records(path)[1:-1]}
    assert outcome.report() == f"replayed {count} messages in {len(mailboxes)} mailboxes: identical"
    assert (outcome.complete, outcome.states) == (True, 4 if topology == "proposing" else 3)
    assert types_in(path) >= {
        "EventPushDue", "ApplicationTimerDue", "StateDump", "CallSendEvent",
        "PartitionClosed", "RMRejectedAllocationAsk",
    }  # fmt: skip


@pytest.mark.parametrize("driver", get_args(CoreDriver))
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_in_service_is_repeated(
    path: Path, topology: TopologyName, driver: CoreDriver
) -> None:
    in_service(path, topology, driver)
    outcome = replayed(path)
    assert outcome.difference is None
    assert outcome.report().startswith(f"replayed {outcome.messages} messages in ")
    assert (outcome.complete, outcome.failures) == (True, ())
    assert outcome.messages == len(records(path)) - 2
    assert outcome.states == (4 if topology == "proposing" else 3)
    assert types_in(path) >= {"EventPushDue", "CallSendEvent", "StateDump"}


@pytest.mark.parametrize("driver", get_args(CoreDriver))
def test_a_run_with_several_schedulers_is_repeated(
    path: Path, driver: CoreDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each plans all of it here. One may have done it all before the other began: once more."""
    contest(monkeypatch)
    refused: set[str] = set()
    for attempt in range(20):
        run = path.with_stem(f"run-{attempt}")
        in_service(run, driver=driver, schedulers=2)
        outcome = replayed(run)
        assert (None, True, ()) == (outcome.difference, outcome.complete, outcome.failures)
        assert 5 == outcome.states, "one more than with one scheduler"
        refused = {it["mailbox"] for it in records(run) if it.get("type") == "ProposalRejected"}
        if refused:
            break
    assert refused, "vacuous: they never decided the same"
    assert {"scheduler:[rm-1]default#1", "scheduler:[rm-1]default#1.1"} >= refused


@pytest.mark.parametrize("driver", get_args(CoreDriver))
def test_the_submitters_in_service_did_race(path: Path, driver: CoreDriver) -> None:
    """Their requests alternate, or nothing would be shown by repeating them."""
    asks = [
        record["payload"]["request"]["asks"][0]["applicationID"]
        for record in records(in_service(path, driver=driver))
        if record.get("type") == "AllocationsRequested" and "asks" in record["payload"]["request"]
    ]
    changes = sum(1 for one, other in pairwise(asks) if one != other)
    assert changes > len(asks) / 3


# -- what was changed is found


def first(recorded: list[Record], **wanted: Any) -> int:
    """Return the place of the first delivery with these fields."""
    return next(
        place
        for place, record in enumerate(recorded)
        if all(record.get(name) == value for name, value in wanted.items())
    )


def change_node(record: Record) -> None:
    record["payload"]["proposals"][0]["node_id"] = "n9"


def change_revision(record: Record) -> None:
    record["payload"]["first_revision"] += 1


def change_stimulus(record: Record) -> None:
    record["stimulus"] = "allocation-99"


def change_cause(record: Record) -> None:
    record["cause"] = [record["cause"][0], record["cause"][1] + 1]


def change_step(record: Record) -> None:
    record["step"] += 1


def change_sender(record: Record) -> None:
    record["sender"] = "stranger"


def change_mailbox(record: Record) -> None:
    record.update(mailbox="stranger", step=1, sender="gateway")


def change_time(record: Record) -> None:
    record["at_ns"] -= 1_000_000_000_000


def change_key(record: Record) -> None:
    record["payload"]["response"]["new"][0]["allocationKey"] = "z"


def change_reply(record: Record) -> None:
    record["payload"]["lowest_id"] += 1


TAMPERED: dict[str, tuple[dict[str, str], Callable[[Record], None], str]] = {
    "a proposal": ({"type": "ProposeAllocations"}, change_node, "is not the same"),
    "facts": ({"type": "FactsAppended", "mailbox": "event_publisher"}, change_revision, "is not the same"),
    "what a callback is told": ({"type": "CallUpdateAllocation"}, change_key, "is not the same"),
    "an answer": ({"type": "EventsFound"}, change_reply, "is not the same"),
    "a stimulus": ({"type": "RMUpdateNode"}, change_stimulus, "is not the same"),
    "a cause": ({"type": "RMUpdateAllocation"}, change_cause, "is not the same"),
    "a step": ({"type": "RunCycle"}, change_step, "is out of order"),
    "a sender": ({"type": "RMNewAllocations"}, change_sender, "comes from nobody"),
    "a receiver": ({"type": "NodesRequested"}, change_mailbox, "goes to nobody"),
    "a sender that sent nothing": (
        {"type": "RMUpdateNode"},
        lambda record: record.update(sender="event_publisher"),
        "is not sent again",
    ),
    "the time of a timer": ({"type": "EventPushDue"}, change_time, "is no timer that was armed"),
    "the cause of a timer": ({"type": "EventPushDue"}, change_cause, "is no timer that was armed"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_a_changed_record_is_found_in_its_place(path: Path, what: str) -> None:
    wanted, change, expected = TAMPERED[what]
    recorded = records(simulate(path))
    place = first(recorded, **wanted)
    change(recorded[place])
    rewrite(path, recorded)
    outcome = replayed(path)
    difference = outcome.difference
    assert difference is not None
    assert (difference.what, difference.record) == (expected, place + 1)
    assert (difference.mailbox, difference.step) == (
        recorded[place]["mailbox"],
        recorded[place]["step"],
    )
    assert outcome.messages == place - 1


def test_a_difference_is_told_as_a_diff(path: Path) -> None:
    recorded = records(simulate(path))
    place = first(recorded, type="ProposeAllocations")
    change_node(recorded[place])
    rewrite(path, recorded)
    head, field, *diff = replayed(path).report().split("\n")
    step = recorded[place]["step"]
    assert head == f"{path}: different at context/{step} (record {place + 1}): is not the same"
    number = recorded[place]["payload"]["proposals"][0]["proposal_id"]
    assert field == f'  proposals.{number}.node_id: recorded "n9", replayed "n1"'
    assert diff[:2] == ["--- recorded", "+++ replayed"]
    assert [line for line in diff[2:] if line[0] in "-+"] == [
        '-      "node_id": "n9"',
        '+      "node_id": "n1"',
    ]


def test_a_changed_request_shows_in_what_it_leads_to(path: Path) -> None:
    recorded = records(simulate(path))
    place = first(recorded, type="ApplicationsRequested")
    recorded[place]["payload"]["request"]["new"][0]["applicationID"] = "app-x"
    rewrite(path, recorded)
    difference = replayed(path).difference
    led_to = first(recorded, type="RMUpdateApplication")
    assert difference is not None
    assert (difference.record, difference.mailbox) == (led_to + 1, "context")
    assert '        "application_id": "app-1",' in difference.recorded
    assert '        "application_id": "app-x",' in difference.replayed


def test_a_missing_record_is_found(path: Path) -> None:
    recorded = records(simulate(path))
    place = first(recorded, type="RMUpdateNode")
    step = recorded[place]["step"]
    del recorded[place]
    rewrite(path, recorded)
    difference = replayed(path).difference
    assert difference is not None
    assert (difference.mailbox, difference.step) == ("context", step + 1)
    assert difference.replayed == (f"step {step} comes next",)


def test_another_state_at_the_end_is_found(path: Path) -> None:
    recorded = records(simulate(path))
    recorded[-1]["states"]["context"] = "0" * 64
    rewrite(path, recorded)
    difference = replayed(path).difference
    assert difference is not None
    assert (difference.mailbox, difference.what) == ("context", "leaves another state")
    assert (difference.record, difference.recorded) == (len(recorded), ("0" * 64,))


def test_a_state_of_nobody_is_found(path: Path) -> None:
    recorded = records(simulate(path))
    recorded[-1]["states"]["stranger"] = "0" * 64
    rewrite(path, recorded)
    difference = replayed(path).difference
    assert difference is not None
    assert (difference.mailbox, difference.replayed) == (
        "stranger",
        ("no machine is at this address",),
    )


# -- recordings that end early


@pytest.mark.parametrize("part", [0.1, 0.35, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_truncated_run_is_repeated_as_far_as_it_goes(
    path: Path, topology: TopologyName, part: float
) -> None:
    data = simulate(path, topology, seed=7).read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    outcome = replayed(path)
    assert outcome.difference is None
    assert (outcome.complete, outcome.states) == (False, 0)
    assert outcome.messages == len(records(path)) - 1
    assert outcome.report().endswith(
        "; incomplete: the recording has no end, so no states were compared"
    )


def test_what_was_still_on_its_way_is_counted(path: Path) -> None:
    recorded = records(simulate(path))
    place = first(recorded, type="RMUpdateNode")
    rewrite(path, recorded[: place + 1])
    handled = [(record["mailbox"], record["step"]) for record in recorded[1 : place + 1]]
    on_their_way = [
        record
        for record in recorded[place + 1 : -1]
        if tuple(record["cause"]) in handled and record["sender"] != "timer"
    ]
    outcome = replayed(path)
    assert len(on_their_way) == outcome.undelivered > 0
    assert f"identical; {outcome.undelivered} sent and not delivered any more" in outcome.report()


def test_a_run_that_failed_fails_again(path: Path) -> None:
    """The step that raises is the last of its mailbox, and no state is recorded of it."""
    recorded = records(simulate(path))
    strange = {**recorded[first(recorded, type="EventsRequested")], "step": 1, "type": "RunCycle"}
    strange["payload"] = {"partition": "p", "epoch": 1}
    rewrite(path, [recorded[0], strange, {"record": "footer", "states": {}}])
    outcome = replayed(path)
    failure = f"event_publisher/1 fails on RunCycle: {KeyError(RunCycle)!r}"
    assert (outcome.difference, outcome.failures) == (None, (failure,))
    assert outcome.report().split("\n") == [
        "replayed 1 messages in 1 mailboxes: identical; no states were recorded at its end",
        failure,
    ]


def test_a_failure_that_was_not_recorded_is_a_difference(path: Path) -> None:
    recorded = records(simulate(path))
    strange = {**recorded[first(recorded, type="EventsRequested")], "step": 1, "type": "RunCycle"}
    strange["payload"] = {"partition": "p", "epoch": 1}
    failure = f"event_publisher/1 fails on RunCycle: {KeyError(RunCycle)!r}"
    rewrite(path, [recorded[0], strange, {**strange, "step": 2}])
    followed = replayed(path).difference
    assert followed is not None
    assert (followed.what, followed.step, followed.replayed) == ("is handled", 2, (failure,))
    states = {"event_publisher": recorded[-1]["states"]["event_publisher"]}
    rewrite(path, [recorded[0], strange, {"record": "footer", "states": states}])
    ended = replayed(path).difference
    assert ended is not None
    assert (ended.what, ended.replayed) == ("leaves another state", (failure,))


# -- a core that behaves otherwise


def in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Planner.plan
    monkeypatch.setattr(Planner, "plan", lambda self, *given: plan(self, *given)[::-1])


def with_another_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    record = UnitOfWork.record

    def more(self: UnitOfWork, fact: f.Fact) -> None:
        if isinstance(fact, f.ClusterResized):
            fact = replace(fact, capacity={"vcore": fact.capacity.get("vcore", 0) + 1})
        record(self, fact)

    monkeypatch.setattr(UnitOfWork, "record", more)


def without_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    record = UnitOfWork.record

    def less(self: UnitOfWork, fact: f.Fact) -> None:
        if not isinstance(fact, f.TimerArmed):
            record(self, fact)

    monkeypatch.setattr(UnitOfWork, "record", less)


def shows(record: Record, name: str) -> bool:
    """Whether a message is of this type, or has a fact of it."""
    facts = record.get("payload", {}).get("facts", ())
    return name in {record.get("type"), *(fact["fact"] for fact in facts)}


PLANTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], dict[TopologyName, str], str]] = {
    "an order": (
        in_another_order,
        {"proposing": "ProposeAllocations", "fused": "RMNewAllocations"},
        "",
    ),
    "an amount": (
        with_another_amount,
        dict.fromkeys(TOPOLOGIES, "ClusterResized"),
        "facts.1.capacity.vcore: recorded 8, replayed 9",
    ),
    "a missing fact": (
        without_a_fact,
        dict.fromkeys(TOPOLOGIES, "TimerArmed"),
        ", replayed nothing",
    ),
}


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("what", PLANTED)
def test_another_behaviour_is_found_at_the_message_that_shows_it(
    path: Path, what: str, topology: TopologyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, shown, field = PLANTED[what]
    recorded = records(simulate(path, topology))
    place = next(n for n, it in enumerate(recorded) if shows(it, shown[topology]))
    plant(monkeypatch)
    difference = replayed(path).difference
    assert difference is not None
    assert difference.record == place + 1
    assert any(line.endswith(field) for line in difference.fields), difference.fields


# -- how far


def test_the_command_says_it_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = records(simulate(path))
    assert main(["trace", "replay", str(path), "--json"]) == 0
    (whole,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (whole["what"], whole["identical"], whole["complete"]) == ("replayed", True, True)
    committed = next(it for it in recorded if it.get("type") == "ProposeAllocations")
    committed["payload"]["proposals"][0]["node_id"] = "n9"
    rewrite(path, recorded)
    assert main(["trace", "replay", str(path), "--json"]) == 1
    whole, first, count = map(json.loads, capsys.readouterr().out.splitlines())
    assert not whole["identical"]
    assert first["step"] == f"{committed['mailbox']}/{committed['step']}"
    (field,) = first["fields"]
    assert field.endswith('.node_id: recorded "n9", replayed "n1"')
    assert (count["is"], count["differences"]) == (first["is"], 1)


def replayed_so_far(path: Path, **extent: Any) -> ReplayOutcome:
    with TraceReader(path) as trace:
        return replay(trace, Extent(**extent))


def test_it_ends_where_it_is_told_to(path: Path) -> None:
    simulate(path)
    outcome = replayed_so_far(path, until=Moment(record=30))
    assert (outcome.messages, outcome.stopped, outcome.difference) == (29, True, None)
    assert "identical" in outcome.report()
    assert outcome.report().endswith("; stopped there, so no states were compared")


def test_it_goes_on_and_counts(path: Path) -> None:
    recorded = records(simulate(path))
    places = [n for n, it in enumerate(recorded) if it.get("type") == "RMUpdateNode"]
    for place in places:
        recorded[place]["payload"]["nodes"][0]["capacity"] = {"vcore": 99}
    rewrite(path, recorded)
    outcome = replayed_so_far(path, goes_on=True)
    assert outcome.messages == len(recorded) - 2
    assert outcome.difference is not None
    assert outcome.difference.record == places[0] + 1
    assert outcome.differences["context", "is not the same"] == len(places)
    lines = outcome.report().split("\n")
    assert (
        f"{sum(outcome.differences.values())} differences in {outcome.messages} messages:" in lines
    )
    assert f"{len(places):>8}  context: is not the same" in lines


def test_a_message_too_many_does_not_shift_the_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(path)
    sent = [it for it in records(path) if it.get("sender", "").startswith("scheduler:")]
    assert sum(it["mailbox"] == "context" for it in sent) > 1, "vacuous: no others"
    handle, greeted = Scheduler.handle, list[int]()

    def greet(self: Scheduler, *given: Any) -> list[Effect]:
        effects = handle(self, *given)
        if not greeted:
            greeted.append(1)
            report = ReportWaiting(partition="p", epoch=1, as_of=0, observations=(), crowds=())
            effects = [*effects, Send(to="context", message=report)]
        return effects

    monkeypatch.setattr(Scheduler, "handle", greet)
    assert replayed_so_far(path, goes_on=True).differences == {("context", "is not the same"): 1}


def test_progress_is_told(path: Path) -> None:
    simulate(path)
    told: list[int] = []
    with TraceReader(path) as trace:
        outcome = replay(trace, progress=told.append)
    assert told == list(range(1, outcome.messages + 1))


def test_a_report_that_said_the_same_twice_replays(path: Path) -> None:
    """It did, when two parts of a plan found the same."""
    tape = Tape(path, "proposing", 0)
    core = Player("proposing", 0, checkers=(tape,)).simulator
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, 2)
    submit(core, "app-1")
    ask(core, "app-1", "a", "b", vcore=3)
    core.settle()
    tape.end(core)
    recorded = records(path)
    reports = [it["payload"] for it in recorded if it.get("type") == ReportWaiting.__name__]
    assert any(it["observations"] for it in reports)
    for report in reports:
        report["observations"] += report["observations"]
    rewrite(path, recorded)
    assert replayed(path).difference is None
