"""`trace chain --down` and `trace path`, held against the names and causes of the raw records."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from recorded_workloads import recorded as recorded_run
from recordings import INSTANCE, Tape, ask, node, records, register, submit

from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.drivers.simulator.choosers import chooser_of
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName

KEYS = [f"k{number}" for number in range(12)]
Record = dict[str, Any]
Step = tuple[str, int]


@pytest.fixture(params=range(4))
def seed(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


def simulated(path: Path, topology: TopologyName, seed: int) -> list[Record]:
    """Ask one by one, as messages go: asks come while a cycle that another set off waits."""
    tape = Tape(path, topology, seed)
    core = Simulator(
        Topology(topology, settings=Settings(), instance=INSTANCE),
        chooser=chooser_of(seed),
        checkers=(tape,),
    )
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, len(KEYS))
    submit(core, "app-1")
    core.settle()
    for key in KEYS:
        ask(core, "app-1", key)
        for _ in range(3):
            core.step()
    core.settle()
    tape.end(core)
    return [it for it in records(path) if "mailbox" in it]


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from (*texts(key), *texts(part))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)


def step(record: Record) -> Step:
    return record["mailbox"], record["step"]


def naming(recorded: list[Record], key: str) -> list[Record]:
    return [it for it in recorded if key in texts(it["payload"])]


def is_led_by_names(recorded: list[Record], record: Record, key: str) -> bool:
    """Whether a message that names the key was being handled on the way to this one, by causes."""
    causes = {step(it): it for it in recorded}
    at = causes.get(tuple(record["cause"]))
    while at is not None:
        if key in texts(at["payload"]):
            return True
        at = causes.get(tuple(at["cause"]))
    return False


def test_a_plan_of_a_cycle_that_had_been_set_off_earlier_is_below_the_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each key is that of one ask, so all that names it came of that ask."""
    path = tmp_path / "run.trace"
    raced = 0
    for seed in range(1, 7):
        recorded = simulated(path, "proposing", seed)
        for key in KEYS:
            named = naming(recorded, key)
            raced += any(
                it["type"] == "ProposeAllocations" and not is_led_by_names(recorded, it, key)
                for it in named
            )
            capsys.readouterr()
            at = "{}/{}".format(*step(named[0]))
            assert main(["trace", "chain", "--json", "--down", str(path), at]) == 0
            lines = map(json.loads, capsys.readouterr().out.splitlines())
            below = {(it["delivery"][0], it["delivery"][1]) for it in lines}
            assert {*map(step, named)} - below == set()
            assert {"ProposeAllocations", "CallUpdateAllocation"} <= {it["type"] for it in named}
    assert raced, "vacuous: each ask has set off the cycle in which it was planned"


STAGES = (
    ("AllocationsRequested", "rm_proxy"), ("RMUpdateAllocation", "context"),
    ("FactsAppended", "scheduler"), ("ProposeAllocations", "context"),
    ("RMNewAllocations", "rm_proxy"), ("CallUpdateAllocation", "rm"),
)  # fmt: skip


def expected(recorded: list[Record], key: str) -> list[Record]:
    """Take the first message of each stage that names the key, behind the stage before."""
    rest, way = iter(naming(recorded, key)), list[Record]()
    kinds = {it["type"] for it in naming(recorded, key) if it["mailbox"] != "event_publisher"}
    for kind, mailbox in STAGES:
        if kind in kinds:
            is_it = (kind, mailbox)
            way.append(
                next(it for it in rest if (it["type"], it["mailbox"].partition(":")[0]) == is_it)
            )
    return way


def the_way_is_that_of_the_raw_records(
    path: Path, recorded: list[Record], key: str, name: str, screen: pytest.CaptureFixture[str]
) -> bool:
    """Compare them, and return whether the request was handled together with others."""
    screen.readouterr()
    assert main(["trace", "path", "--json", str(path), name]) == 0
    told = json.loads(screen.readouterr().out)
    way = expected(recorded, key)
    assert [step(it) for it in way] == [tuple(it["step"]) for it in told["parts"]]
    began_ns = way[0].get("sent_ns") or way[0]["at_ns"]
    times = [began_ns, *(it["at_ns"] for it in way)]
    later = [max(times[: place + 1]) for place in range(len(times))]
    took = [after - before for before, after in pairwise(later)]
    assert took == [it["took_ns"] for it in told["parts"]]
    taken = recorded.index(way[1])
    mailbox = [it for it in recorded[taken:] if it["mailbox"] == way[1]["mailbox"]]
    return bool(way[1].get("joined") or (len(mailbox) > 1 and mailbox[1].get("joined")))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_way_of_an_ask_whose_request_was_joined_with_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], topology: TopologyName, seed: int
) -> None:
    path = tmp_path / "run.trace"
    recorded = simulated(path, topology, seed + 1)
    joined = [
        the_way_is_that_of_the_raw_records(path, recorded, key, f"app-1/{key}", capsys)
        for key in KEYS
    ]
    assert any(joined), "vacuous: no request was handled together with others"


def test_the_way_of_an_ask_has_its_times_where_requests_were_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded_run("W5", "proposing", tmp_path / "run.trace")
    recorded = [it for it in records(path) if "mailbox" in it]
    keys = [f"app-{app}-first-{number}" for app in range(3) for number in range(3)]
    joined = [the_way_is_that_of_the_raw_records(path, recorded, key, key, capsys) for key in keys]
    assert any(joined), "vacuous: no request was handled together with others"
