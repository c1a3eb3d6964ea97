"""The page follows an item all the way, as `trace chain` does, whatever it was handled together with."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import ranges
from recorded_workloads import deliveries_of, recorded
from recordings import ask, in_service, node, register, submit
from viewed import answered, data, texts, way

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.messages.base import Cause, Delivery
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.trace.chain import Link, downwards, upwards
from yunikorn_actors.trace.origins.items import Part, items_in
from yunikorn_actors.trace.origins.message_parts import texts_in

SAMPLE = 40
_ASK = """
answer(asked.map(([message, place]) => {
  const stage = read.stages(message)[place];
  return {
    led: read.led(message, stage), item: read.item(stage),
    came: read.came(message, stage).map((it) => [it.message, it.depth]),
  };
}));
"""


@pytest.fixture(scope="module", params=ranges.first(["W5", "service", "W6"], 2))
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("run") / "run.trace"
    if request.param == "service":
        return in_service(file)
    return recorded(request.param, "proposing", file)


def viewed(path: Path, *options: str) -> dict[str, Any]:
    out = path.with_suffix(".html")
    assert main(["trace", "view", str(path), "-o", str(out), "--why", "none", *options]) == 0
    run: dict[str, Any] = data(out)["runs"][0]
    return run


def chosen(deliveries: list[Delivery], count: int = SAMPLE) -> list[tuple[int, int]]:
    """Draw items of messages that one name tells from the others there."""
    spoken = [
        (number, place)
        for number, it in enumerate(deliveries)
        for items in [items_in(it.message)]
        for place, item in enumerate(items)
        if sum(not item.names.isdisjoint(other.names) for other in items) == 1
    ]
    return Random(1).sample(spoken, count)  # noqa: S311 - a sample


def places(links: list[Link]) -> Iterator[str]:
    return (f"{it.delivery.mailbox}/{it.delivery.step}" for it in links)


def whole(deliveries: list[Delivery], message: int, place: int) -> tuple[Cause, str]:
    """Return a step, and a name by which this item alone is meant."""
    it = deliveries[message]
    item = items_in(it.message)[place]
    name = item.uuid or (f"{item.application_id}/{item.key}" if item.key else item.application_id)
    return Cause(it.mailbox, it.step), name


def test_each_item_has_the_way_that_the_chain_has(path: Path) -> None:
    run, deliveries = viewed(path)["run"], deliveries_of(path)
    at, longest = texts(run, "place"), 0
    for message, place in chosen(deliveries):
        step, name = whole(deliveries, message, place)
        found = [at[it] for it in way(run, message, place)]
        assert list(places(upwards(step, path, name))) == found[::-1]
        longest = max(longest, len(found))
    assert longest > 2


def test_an_application_is_meant_by_its_name_and_not_the_first_of_its_asks(path: Path) -> None:
    """By its name alone: `--about app-1` of a message that has asks of it before."""
    found = 0
    for it in deliveries_of(path):
        items = items_in(it.message)
        for item in items:
            first = next(one for one in items if one.application_id == item.application_id)
            if item.part is Part.APPLICATION and first.key:
                way = upwards(Cause(it.mailbox, it.step), path, item.application_id)
                assert way[-1].about == item.application_id
                found += 1
                break
        if found == 3:
            return
    assert found, "vacuous: no application behind its asks"


@ranges.examples(SAMPLE // 2, 2 * SAMPLE)
def test_the_page_shows_the_same_before_and_behind_a_message(path: Path, examples: int) -> None:
    """What its script makes of the ways; the lanes are tried in a browser."""
    run, deliveries = viewed(path), deliveries_of(path)
    at, questions = texts(run["run"], "place"), chosen(deliveries, examples)
    answers, far = answered(path.with_suffix(".html"), _ASK, questions), 0
    for question, answer in zip(questions, answers, strict=True):
        step, name = whole(deliveries, *question)
        assert [*places(upwards(step, path, name))][:-1] == [at[it] for it in answer["led"]]
        links = downwards(step, path, name)[1:]
        assert {*places(links)} == {at[it] for it, _ in answer["came"]}
        far += len(links) > 3
    assert far > 3, "vacuous: hardly anything came of them"


def test_the_ways_of_what_a_filter_leaves_are_whole(path: Path) -> None:
    """They lead on through messages that are not in the picture."""
    deliveries = deliveries_of(path)
    calls = [it for it in deliveries if isinstance(it.message, CallUpdateAllocation)]
    call = calls[len(calls) // 2]
    run = viewed(path, "--type", "CallUpdateAllocation", "--type", "AllocationsRequested")["run"]
    ways, at = run["ways"], texts(run, "place")
    message = at.index(f"{call.mailbox}/{call.step}")
    for place, item in enumerate(items_in(call.message)[:5]):
        step, name = whole([call], 0, place)
        found = [at[it] for it in way(run, message, place)]
        wanted = [it for it in places(upwards(step, path, name)) if it in at]
        assert wanted == found[::-1]
        assert item.name in {run["texts"][it] for it in ways["item"]}


_SPOKEN = "answer(asked.map((it) => [...read.spoken(read.objects[it])]));"


def test_the_page_marks_what_speaks_of_a_thing(path: Path) -> None:
    """By its names: of an ask by a UUID, or by its key beside its application."""
    objects, deliveries = viewed(path)["about"]["objects"], deliveries_of(path)
    said = [set(texts_in(it.message)) for it in deliveries]
    asked = [*range(0, len(objects), 1 + len(objects) // SAMPLE)]
    for number, spoken in zip(
        asked, answered(path.with_suffix(".html"), _SPOKEN, asked), strict=True
    ):
        thing = objects[number]
        owners = {thing["application"], *thing["uuids"]} - {""}
        assert spoken == [
            message
            for message, it in enumerate(said)
            if not it.isdisjoint(thing["names"]) and not (owners and it.isdisjoint(owners))
        ]
        assert spoken
    assert None in [objects[it]["messages"] for it in asked], "vacuous: the page looks for none"


def test_names_that_are_no_plain_texts_are_marked_where_they_stand(tmp_path: Path) -> None:
    """As the name of a field, or as what stands between two texts of a payload."""
    path, odd = tmp_path / "a.trace", ("spec", 'a"b', "\\", ",", "\u00e9\u2028")
    with SchedulerCore(driver="direct", trace=path) as core:
        register(core)
        node(core, "n1", si.ActionFromRM.CREATE, 4)
        for name in odd:
            submit(core, name)
            ask(core, name, ":")
    objects = viewed(path)["about"]["objects"]
    asked = [number for number, it in enumerate(objects) if it["kind"] in {"application", "ask"}]
    said = [set(texts_in(it.message)) for it in deliveries_of(path)]
    for number, spoken in zip(
        asked, answered(path.with_suffix(".html"), _SPOKEN, asked), strict=True
    ):
        thing = objects[number]
        owner = thing["application"]
        wanted = [it for it, texts in enumerate(said) if {*thing["names"]} & texts]
        assert spoken == [it for it in wanted if not owner or said[it] & {owner, *thing["uuids"]}]
        assert 0 < len(spoken) < len(said) / 2
    assert 2 * len(odd) == len(asked)
