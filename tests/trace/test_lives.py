"""The life of a thing, and the way of an ask, beside what the raw records say."""

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from recordings import ask, in_service, node, records, register, rewrite, simulate, submit

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.trace import story as story_module
from yunikorn_actors.trace.path import path_of
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.story import stories, story, subjects_in

Screen = pytest.CaptureFixture[str]
ONE = si.Resource.of({"vcore": 1})
SWAP = """
name: a member takes over its placeholder
rm: {confirm: manual}
steps:
  - create_node: {id: n1, capacity: {vcore: 4000}}
  - add_app: {id: gang}
  - ask: {app: gang, key: hold, placeholder: true, task_group: tg, resource: {vcore: 2000}}
  - ask: {app: gang, key: member, task_group: tg, resource: {vcore: 2000}}
  - confirm: all
  - release: {app: gang, key: member}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def told(capsys: Screen, *command: str, status: int = 0) -> list[dict[str, Any]]:
    assert main(["trace", *command, "--json"]) == status
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def raw_facts(path: Path) -> list[dict[str, Any]]:
    """Every fact once; those of a recording without runs are numbered one by one."""
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for record in records(path):
        if record.get("type") == "FactsAppended":
            body = record["payload"]
            for number, fact in enumerate(body["facts"], body["first_revision"]):
                found.setdefault((body["partition"], body["epoch"], number), fact)
    return list(found.values())


# -- lives


BATCH = 200


def test_what_a_batch_says_is_worked_out_once_for_all_lives(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each of hundreds of asks in it, a page of 20,000 messages took minutes."""
    with SchedulerCore(driver="direct", trace=path) as core:
        register(core)
        node(core, "n1", si.ActionFromRM.CREATE, BATCH // 2)
        submit(core, "app-1")
        ask(core, "app-1", *(f"a-{number}" for number in range(BATCH)))
    worked_out: Counter[tuple[str, int]] = Counter()

    def counted(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def count(value: Any) -> Any:
            worked_out[name, id(value)] += 1
            return function(value)

        return count

    for name in ("message_summary", "items_in", "refusals_in"):
        monkeypatch.setattr(story_module, name, counted(name, getattr(story_module, name)))
    with TraceReader(path) as trace:
        deliveries = list(trace)
    subjects = subjects_in(deliveries)
    lives = stories(deliveries, subjects)
    asks = [
        life for it, life in zip(subjects, lives, strict=True) if it.kind == "ask" and len(life) > 1
    ]
    assert len(asks) == BATCH
    assert max(worked_out.values()) == 1


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_node_has_all_the_facts_that_name_it(
    path: Path, capsys: Screen, topology: TopologyName
) -> None:
    simulate(path, topology)
    named = [
        fact["fact"].replace("AllocationsCommitted", "AllocationCommitted")
        for fact in raw_facts(path)
        for node in (fact.get("node_id"), *fact.get("node_ids", ()))
        if node == "n1"
    ]
    assert named == [it["what"] for it in told(capsys, "story", str(path), "n1")]
    assert len(named) > 5


ALIKE = """
name: several of one shape are placed as a run
steps:
  - create_node: {ids: [n1, n2], capacity: {vcore: 8}}
  - add_app: {id: app}
  - ask: {app: app, key: k, count: 12, resource: {vcore: 1}}
"""


def test_a_node_is_told_of_its_own_part_of_a_run(path: Path, capsys: Screen) -> None:
    scenario = path.with_suffix(".yaml")
    scenario.write_text(ALIKE)
    assert main(["scenario", "run", str(scenario), "--trace", str(path)]) == 0
    capsys.readouterr()
    lines = [it["text"] for it in told(capsys, "story", str(path), "n2") if "k-" in it["text"]]
    assert 1 < len(lines) < 12, "vacuous: there was no run over two nodes"
    assert [] == [line for line in lines if "-> n2 " not in line]


def test_an_ask_is_followed_from_the_request_to_the_end(path: Path, capsys: Screen) -> None:
    simulate(path)
    found = told(capsys, "story", str(path), "b")
    assert [
        "AllocationsRequested", "AskAdded", "AllocationCommitted", "CallUpdateAllocation",
        "AllocationReleased",
    ] == [it["what"] for it in found if it["what"] != "AskReported"][:5]  # fmt: skip
    (committed,) = [it["text"] for it in found if it["what"] == "AllocationCommitted"]
    uuid = committed.rpartition(" as ")[2]
    by_uuid = told(capsys, "story", str(path), uuid)
    assert [it["what"] for it in by_uuid] == [it["what"] for it in found]


def swapped(path: Path) -> None:
    scenario = path.with_suffix(".yaml")
    scenario.write_text(SWAP)
    assert main(["scenario", "run", str(scenario), "--trace", str(path)]) == 0


def test_the_member_that_takes_over_a_placeholder_is_followed(path: Path, capsys: Screen) -> None:
    swapped(path)
    capsys.readouterr()
    found = told(capsys, "story", str(path), "gang/hold")
    kinds = [it["what"] for it in found]
    begin, swap, gone = map(kinds.index, ("AskAdded", "SwapCompleted", "AllocationReleased"))
    assert begin < swap < gone
    assert "member" in found[gone]["text"]


def test_what_was_refused_is_a_part_of_its_life(path: Path, capsys: Screen) -> None:
    simulate(path)
    found = told(capsys, "refusals", str(path))
    (ask,) = [it["first"] for it in found if it["what"] == "ask"]
    assert main(["trace", "story", str(path), ask]) == 1, "it never was an ask"
    assert "nothing in it has the name 'nobody/f'" in capsys.readouterr().err


def test_a_key_of_several_applications_has_to_be_told_apart(
    path: Path, tmp_path: Path, capsys: Screen
) -> None:
    scenario = tmp_path / "two.yaml"
    scenario.write_text(
        "name: two\nsteps:\n"
        + "".join(
            f"  - add_app: {{id: {app}}}\n  - ask: {{app: {app}, key: k, resource: {{vcore: 1}}}}\n"
            for app in ("one", "two")
        )
    )
    assert main(["scenario", "run", str(scenario), "--trace", str(path)]) == 0
    capsys.readouterr()
    assert main(["trace", "story", str(path), "k"]) == 1
    assert (
        "several applications have an ask 'k': write one of one/k, two/k" in capsys.readouterr().err
    )
    assert main(["trace", "story", str(path), "two/k"]) == 0
    assert capsys.readouterr().out.startswith("ask two/k\n")


def test_a_name_that_nobody_has_is_answered_with_those_like_it(path: Path, capsys: Screen) -> None:
    simulate(path)
    for command in ("story", "path"):
        assert main(["trace", command, str(path), "ap-1"]) == 1
        assert "nothing in it has the name 'ap-1'; did you mean app-1" in capsys.readouterr().err


def test_only_an_ask_has_a_way(path: Path, capsys: Screen) -> None:
    simulate(path)
    assert main(["trace", "path", str(path), "n1"]) == 1
    assert "node n1 is no ask: only asks have a way" in capsys.readouterr().err


def test_a_life_is_told_in_the_order_of_time(path: Path, capsys: Screen) -> None:
    """Who is told of a fact may hear of it after the callback has heard what came of it."""
    in_service(path)
    recorded = records(path)
    late = [it for it in recorded if it.get("type") == "FactsAppended"]
    rest = [it for it in recorded[:-1] if it not in late]
    rewrite(path, [*rest, *late, recorded[-1]])
    times = [it["at_ns"] for it in told(capsys, "story", str(path), "app-1/app-1-9")]
    assert sorted(times) == times
    assert len(times) > 2


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_line_names_the_step_that_did_it_and_its_time(
    path: Path, capsys: Screen, topology: TopologyName
) -> None:
    """Facts reach those who are told of them later; some of them, as timers, have no time."""
    with SchedulerCore(topology=topology, driver="direct", trace=path) as core:
        register(core)
        node(core, "n1", si.ActionFromRM.CREATE, 9)
        submit(core, "app")
        seat = si.AllocationAsk(
            application_id="app", allocation_key="seat", resource_ask=ONE, placeholder=True,
            task_group_name="choir",
        )  # fmt: skip
        core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=(seat,)))
    handled = {f"{it['mailbox']}/{it['step']}": it["at_ns"] for it in records(path) if "step" in it}
    lines = told(capsys, "story", str(path), "app")
    assert {"AllocationCommitted", "TimerArmed"} <= {it["what"] for it in lines}
    for line in lines:
        mailbox, step = line["step"]
        assert mailbox == "context"
        assert line["at_ns"] == handled[f"{mailbox}/{step}"]


def test_an_ask_is_named_in_each_line_of_its_life(path: Path, capsys: Screen) -> None:
    scenario = path.with_suffix(".yaml")
    scenario.write_text(ALIKE)
    assert main(["scenario", "run", str(scenario), "--trace", str(path)]) == 0
    capsys.readouterr()
    lines = told(capsys, "story", str(path), "k-11")
    assert {"AllocationsRequested", "CallUpdateAllocation"} <= {it["what"] for it in lines}
    assert all("k-11" in it["text"].split() for it in lines)


# -- ways


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_parts_of_a_way_add_up_to_the_whole(path: Path, topology: TopologyName) -> None:
    in_service(path, topology)
    with TraceReader(path) as trace:
        deliveries = list(trace)
    whole = 0
    for number in (0, 10, 20, 39):  # nobody takes the last one back
        key = f"app-1-{number}"
        way = path_of(path, f"app-1/{key}")
        asked = next(
            it for it in deliveries
            if type(it.message).__name__ == "AllocationsRequested"
            and any(ask.allocation_key == key for ask in it.message.request.asks)  # type: ignore[attr-defined]
        )  # fmt: skip
        announced = next(
            (
                it for it in deliveries
                if type(it.message).__name__ == "CallUpdateAllocation"
                and any(new.allocation_key == key for new in it.message.response.new)  # type: ignore[attr-defined]
            ),
            None,
        )  # fmt: skip
        assert way.began_ns == asked.sent_ns
        assert way.is_whole is (announced is not None)
        if announced is not None:
            whole += 1
            assert announced.at_ns == way.began_ns + way.took_ns
            assert len(way.parts) == (6 if topology == "proposing" else 4)
        assert all(part.took_ns >= 0 for part in way.parts)
    assert whole


def test_a_way_is_drawn(path: Path, capsys: Screen) -> None:
    in_service(path)
    assert main(["trace", "path", str(path), "app-2/app-2-9"]) in {0, 1}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("app-2/app-2-9: ")
    assert any("<- most of it" in line for line in lines)
    shown = [Decimal(line.split(" ms")[0].split()[-1]) for line in lines]
    assert shown[0] == sum(shown[1:]), "what is rounded adds up as well"


@pytest.mark.parametrize("run", [in_service, swapped])
def test_many_lives_are_told_at_once_as_each_by_itself(
    path: Path, run: Callable[[Path], object]
) -> None:
    run(path)
    with TraceReader(path) as trace:
        subjects = subjects_in(trace)
    with TraceReader(path) as trace:
        told = stories(trace, subjects)
    assert {"application", "ask", "node", "queue", "user"} == {it.kind for it in subjects}
    for subject, lines in [*zip(subjects, told, strict=True)][:: len(told) // 8 + 1]:
        assert lines == story(path, subject.name)[1]
        assert lines
