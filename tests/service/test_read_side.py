"""The parts of the read side by themselves: what it notes, how it writes values, how it fails."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from configurations import CONFIGS
from probes import PATIENCE_S, wait_until
from served import ANN, CONFIG, P, Served, node, register, serving

from yunikorn_actors.config import ExtraConfig, parse_config
from yunikorn_actors.drivers.live.actors import FollowerHolder
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.followers import ManagerDescribed, ManagerLeft
from yunikorn_actors.messages.restart import EventsRestored
from yunikorn_actors.messages.scheduling import FactsAppended, PartitionSnapshot
from yunikorn_actors.service.listener import Site, Standing
from yunikorn_actors.service.read import configuration
from yunikorn_actors.service.read.nodes import _tenth
from yunikorn_actors.service.read.projection import LOG_MAX, AskNote
from yunikorn_actors.service.read.read_model import SAMPLES_MAX, History, ReadSide
from yunikorn_actors.service.read.rendering import go_duration, lean, percentages
from yunikorn_actors.service.read.replica import Book, EventCounts, GapInFacts
from yunikorn_actors.service.rest import yunikorn_routes as yunikorn
from yunikorn_actors.service.rest.exchange import Asked
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.snapshot import image_of
from yunikorn_actors.values.durations import MINUTE


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (1_000_000, "1ms"),
        (30_000_000_000, "30s"),
        (90_500_000_000, "1m30.5s"),
        (3_600_000_000_000, "1h0m0s"),
        (-2_000_000_000, "-2s"),
    ],
)
def test_a_duration_as_go_writes_it(ns: int, text: str) -> None:
    assert text == go_duration(ns)


def test_what_is_empty_is_left_out() -> None:
    value = {"a": 0, "b": "", "c": [], "d": {}, "e": False, "f": 0, "g": 1}
    assert {"f": 0, "g": 1} == lean(value, ("f",))
    assert {"vcore": 150} == percentages({"vcore": 3, "memory": 0, "gpu": 1}, {"vcore": 2})


@pytest.mark.parametrize(
    ("taken", "tenth"), [(0, 0), (1, 0), (10, 0), (11, 1), (100, 9), (250, 9), (-5, 0)]
)
def test_a_full_tenth_counts_below(taken: int, tenth: int) -> None:
    assert tenth == _tenth(taken, 100)


def test_samples_are_those_of_the_minutes_that_have_passed() -> None:
    history, counted = History(0), [1, 2]
    history.catch_up(MINUTE - 1, lambda: (0, 0))
    assert [] == list(history.samples)
    history.catch_up(3 * MINUTE, lambda: (counted[0], counted[1]))
    assert [(n * MINUTE, 1, 2) for n in (1, 2, 3)] == [tuple(it) for it in history.samples]
    history.catch_up(5_000 * MINUTE, lambda: (3, 4))
    assert SAMPLES_MAX == len(history.samples)
    assert (5_000 * MINUTE, 3, 4) == history.samples[-1]


def test_a_log_counts_what_is_said_again_and_forgets_the_oldest() -> None:
    note = AskNote()
    for at_ns in (1, 5):
        note.say("full", at_ns)
    assert (2, 5) == (note.log["full"].count, note.log["full"].last_ns)
    for number in range(LOG_MAX):
        note.say(str(number), 6)
    assert "full" not in note.log
    assert LOG_MAX == len(note.log)


@pytest.mark.parametrize("text", [*CONFIGS, CONFIG])
def test_a_configuration_that_is_written_again_reads_as_the_same(text: str) -> None:
    config = parse_config(text)
    shown = ManagerDescribed(
        rm_id="rm-1",
        version="",
        policy_group="",
        build_info={},
        extra_config={},
        extra=ExtraConfig(),
        config=config,
    )
    document = configuration.document(shown)
    assert config.partitions == parse_config(yaml.safe_dump(document)).partitions
    assert len(json.dumps(configuration.in_go_names(document))) > 0


def test_the_numbers_of_records_are_those_of_the_core() -> None:
    with serving() as served:
        register(served)
        served.nodes(node("n1"), node("n2"))
        of_core = served.core.events(3, 5)
        read = served.get("/ws/v1/events/batch?start=3&count=5")
        assert (of_core.lowest_id, of_core.highest_id) == (read["LowestID"], read["HighestID"])
        assert [it.object_id for it in of_core.records] == [
            it["objectID"] for it in read["EventRecords"]
        ]


def test_facts_that_overtake_the_history_have_the_numbers_behind_it() -> None:
    """Context and the event publisher send to a follower each by itself."""
    name, settings = "[rm-1]default", Settings()

    def refused(revision: int) -> FactsAppended:
        fact = f.ConfigurationRefused(reason=f"fault {revision}", at_ns=revision)
        return FactsAppended(
            partition=name, epoch=1, rm_id="rm-1", first_revision=revision, facts=(fact,)
        )

    publisher, state = EventPublisher(settings=settings), PartitionState(name)
    publisher.handle(refused(1), 1)
    apply(state, refused(1).facts[0])
    history = publisher.remembered()
    publisher.handle(refused(2), 2)
    side = ReadSide(settings=settings, instance="", start_ns=0)
    overtaking: tuple[Message, ...] = (
        PartitionSnapshot(partition=name, epoch=1, image=image_of(state)),
        refused(2),
        history,
    )
    for message in (*overtaking, refused(3)):
        side.handle(message, 0)
    publisher.handle(refused(3), 3)
    assert publisher.ring.read(0, 9) == side.events.ring.read(0, 9)
    assert publisher.ring.next_id == side.events.ring.next_id


def batch_of(served: Served) -> dict[str, Any]:
    served.settle()
    read: dict[str, Any] = served.get("/ws/v1/events/batch")
    return read


def test_records_from_before_a_restart_are_there_and_their_numbers_go_on(tmp_path: Path) -> None:
    completed = f"{P}/applications/completed"
    with serving(journal=tmp_path) as former:
        register(former)
        former.nodes(node("n1"))
        former.application("app-1", "root.prod", ANN)
        former.asks("app-1", "a")
        former.release("app-1", "a")
        wait_until(lambda: former.get(completed))
        before, ended = batch_of(former), former.get(completed)
    with serving(journal=tmp_path) as served:
        read = batch_of(served)
        records = read["EventRecords"]
        assert before["EventRecords"] == records[: len(before["EventRecords"])]
        assert before["LowestID"] == read["LowestID"] == 0
        assert [it["applicationID"] for it in ended] == [
            it["applicationID"] for it in served.get(completed)
        ]
        register(served)
        served.nodes(node("n1"), node("n2"))
        assert_numbered_as_in_the_core(served)


def assert_numbered_as_in_the_core(served: Served) -> None:
    of_core, read = served.core.events(), batch_of(served)
    assert (of_core.lowest_id, of_core.highest_id) == (read["LowestID"], read["HighestID"])
    assert [(it.object_id, it.timestamp_nano) for it in of_core.records] == [
        (it["objectID"], it["timestampNano"]) for it in read["EventRecords"]
    ]


def test_a_read_side_that_comes_later_begins_with_the_records_of_before() -> None:
    with serving() as served:
        register(served)
        served.nodes(node("n1"))
        later = RestPart(Site(served.core, "127.0.0.1:0", Standing()))
        later.start()
        try:
            served.nodes(node("n2"))
            assert_numbered_as_in_the_core(served._replace(part=later))
        finally:
            later.stop(PATIENCE_S)


def test_what_becomes_true_before_the_records_of_before_are_told_waits_for_them() -> None:
    heard: list[Message] = []
    holder = FollowerHolder(SimpleNamespace(receive=heard.append), pytest.fail)
    snapshot = PartitionSnapshot(partition="[rm-1]default", epoch=1, image={})
    fact = FactsAppended(
        partition="[rm-1]default", epoch=1, rm_id="rm-1", first_revision=1, facts=()
    )
    left, records = ManagerLeft(rm_id="rm-2"), EventsRestored(next_id=7, facts=(), known=())
    for message in (snapshot, fact, left, records, fact):
        holder.handle(message, 0)
    assert [snapshot, records, fact, left, fact] == heard


def missed(served: Served) -> None:
    gap = FactsAppended(
        partition="[rm-1]default", epoch=1, rm_id="rm-1", first_revision=9, facts=()
    )
    served.part.receive(gap)


def test_facts_that_come_twice_are_refused() -> None:
    book, held = Book("[rm-1]default", 1, EventCounts(), 0), f.SchedulingHeld(held=True, at_ns=1)
    book.take(1, (held,))
    with pytest.raises(GapInFacts):
        book.take(1, (held,))


def test_a_read_side_that_has_missed_something_says_so() -> None:
    with serving() as served:
        missed(served)
        response = served.ask("/ws/v1/partitions")
        assert (503, True) == (
            response.status,
            "was sent facts from revision 9" in response.json["message"],
        )


def test_what_a_check_of_health_found_holds_for_a_while() -> None:
    side = ReadSide(settings=Settings(), instance="i", start_ns=0)
    check = yunikorn.Checkup()
    counts = {
        "issued_uuids": 0, "stale_messages": 0, "scheduling_errors": 1, "rejected_asks": 0,
        "refused_node_actions": 0, "failed_nodes": [], "failed_machines": {},
    }  # fmt: skip
    told = {
        "counts": counts,
        "trace_failure": "",
        "configuration_fault": "line 3",
        "read_side_fault": "",
    }
    found = check(side, Asked(answer=told)).content()
    failed = [it["Name"] for it in found["HealthChecks"] if not it["Succeeded"]]
    assert (False, ["Scheduling errors", "Configuration file"]) == (found["Healthy"], failed)
    well = told | {"counts": counts | {"scheduling_errors": 0}, "configuration_fault": ""}
    side.catch_up(yunikorn.HEALTH_NS - 1)
    assert not check(side, Asked(answer=well))["Healthy"]
    side.catch_up(yunikorn.HEALTH_NS)
    assert check(side, Asked(answer=well)).content()["Healthy"]


def test_the_core_and_the_command_line_need_no_web_server() -> None:
    program = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "from yunikorn_actors.cli import main\n"
        "sys.exit(main(['serve', '--grpc', 'off', '--rest', '127.0.0.1:0']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert 2 == done.returncode
    assert "pip install -e '.[service]'" in done.stderr


def test_only_the_process_of_the_read_side_imports_the_web_server() -> None:
    program = (
        "import sys\n"
        "from yunikorn_actors.service.service import KINDS, maker_of\n"
        "maker_of(KINDS['rest'])\n"
        "sys.exit('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE_S, check=False)
    assert 0 == done.returncode
