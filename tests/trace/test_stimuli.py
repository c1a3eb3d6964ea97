"""Requests that were handled together: what each led to is told with its own name."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from recorded_workloads import deliveries_of, recorded
from recordings import records, rewrite

from yunikorn_actors.cli import main
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Cause, Delivery, is_manager
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.rm_events import AllocationsRequested, RMUpdateAllocation
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.state.facts import AskAdded
from yunikorn_actors.trace.causes import named, why
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.origins.cause_index import CauseIndex
from yunikorn_actors.trace.origins.items import Item, Part, items_in
from yunikorn_actors.trace.origins.message_parts import facts_of
from yunikorn_actors.trace.origins.stimuli import Stimuli
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.story import story
from yunikorn_actors.trace.view.run_data import NONE, Shown, drawn


@pytest.fixture(scope="module")
def as_recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded("W5", "proposing", tmp_path_factory.mktemp("churn") / "run.trace")


@pytest.fixture(scope="module")
def late(as_recorded: Path) -> Path:
    """The same run with an event publisher that got each fact as late as a busy machine may let it."""
    path = as_recorded.with_name("late.trace")
    path.write_bytes(as_recorded.read_bytes())
    kept: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for record in records(as_recorded):
        if (record.get("mailbox"), record.get("type")) == (EVENT_PUBLISHER, "FactsAppended"):
            waiting.append(record)
            continue
        if record.get("mailbox") == EVENT_PUBLISHER or record["record"] == "footer":
            kept += waiting
            waiting = []
        kept.append(record)
    rewrite(path, kept)
    return path


@pytest.fixture(params=["as_recorded", "late"])
def churn(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


def in_the_middle(path: Path) -> list[tuple[str, Item]]:
    """Return asks that were handled together with a later request, and the calls that brought them."""
    deliveries = deliveries_of(path)
    stimuli = {
        (it.application_id, it.key): delivery.stimulus
        for delivery in deliveries
        if isinstance(delivery.message, AllocationsRequested)
        for it in items_in(delivery.message)
        if it.part is Part.ASK
    }
    requests = [
        it
        for it in deliveries
        if it.mailbox == CONTEXT and isinstance(it.message, RMUpdateAllocation)
    ]
    found = [
        (stimuli[item.application_id, item.key], item)
        for one, other in pairwise(requests)
        if other.joined and other.step == one.step + 1
        for item in items_in(one.message)
        if item.part is Part.ASK
    ]
    assert len(found) > 50, "vacuous: hardly anything was handled together"
    return found


def about(deliveries: list[Delivery], item: Item, kind: type) -> list[Delivery]:
    return [
        it
        for it in deliveries
        if isinstance(it.message, kind)
        and any(
            (one.application_id, one.key, one.part) == (item.application_id, item.key, Part.ASK)
            for one in items_in(it.message)
        )
    ]


def placed_or_added(delivery: Delivery) -> list[Item]:
    """What else becomes of an ask may have come of another request of its application."""
    if isinstance(delivery.message, FactsAppended):
        added = [it for it in facts_of(delivery.message) if isinstance(it, AskAdded)]
        return [Item(Part.ASK, it.spec.application_id, it.spec.key) for it in added]
    is_placement = isinstance(delivery.message, CallUpdateAllocation)
    return items_in(delivery.message) if is_placement else []


def test_each_item_has_the_stimulus_of_its_own_request(churn: Path) -> None:
    own = {(item.application_id, item.key): stimulus for stimulus, item in in_the_middle(churn)}
    heads, stimuli, checked, strangers = CauseIndex(churn), Stimuli(), 0, 0
    for delivery in deliveries_of(churn):
        stimuli.note(delivery)
        # Behind a request that was alone its own stimulus is true: it set off what follows.
        is_mixed = heads.is_mixed(Cause(delivery.mailbox, delivery.step))
        if is_mixed and (is_manager(delivery.mailbox) or delivery.mailbox == EVENT_PUBLISHER):
            for item in placed_or_added(delivery):
                wanted = own.get((item.application_id, item.key))
                if item.part is Part.ASK and wanted is not None:
                    assert wanted == stimuli.of(delivery, item)
                    checked += 1
                    strangers += delivery.stimulus != wanted
    assert checked > 100
    assert strangers > 50, "vacuous: all have the stimulus of their own request anyway"


def test_a_life_names_the_request_that_asked_for_it(churn: Path) -> None:
    for stimulus, item in in_the_middle(churn)[::23]:
        _, told = story(churn, f"{item.application_id}/{item.key}")
        assert {stimulus} == {it.stimulus for it in told if it.what == "AskAdded"}


def test_what_a_request_led_to_is_shown_whole_and_without_strangers(
    churn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deliveries, heads = deliveries_of(churn), CauseIndex(churn)
    for stimulus, item in in_the_middle(churn)[::62]:
        assert main(["trace", "show", str(churn), "--stimulus", stimulus]) == 0
        text = capsys.readouterr().out
        for kind in (FactsAppended, CallUpdateAllocation):
            for it in about(deliveries, item, kind):
                if heads.is_mixed(Cause(it.mailbox, it.step)):
                    assert f"{it.mailbox}/{it.step} " in text
        own = {
            (one.application_id, one.key)
            for it in deliveries
            if it.stimulus == stimulus and isinstance(it.message, AllocationsRequested)
            for one in items_in(it.message)
        }
        for it in deliveries:
            items = items_in(it.message)
            if is_manager(it.mailbox) and f" {it.mailbox}/{it.step} " in text and items:
                is_own = any((one.application_id, one.key) in own for one in items)
                assert is_own or any(one.part is Part.APPLICATION for one in items)


def test_a_wait_began_with_the_request_that_asked(churn: Path) -> None:
    chosen = in_the_middle(churn)[::17]
    keys = [f"{item.application_id}/{item.key}" for _, item in chosen]
    with TraceReader(churn) as trace:
        answer = why(trace, named(keys))
    since = {f"{it.application_id}/{it.key}": it.periods[0].since for it in answer.waits}
    assert {key: stimulus for key, (stimulus, _) in zip(keys, chosen, strict=True)} == since


def test_on_the_page_facts_came_of_the_request_about_them(churn: Path) -> None:
    page = drawn(Shown(name="x", path=churn), FilterOptions())
    cause, led = page.run.messages.cause, 0
    for number, delivery in enumerate(page.deliveries):
        before = cause[number]
        if before == NONE or not isinstance(delivery.message, FactsAppended):
            continue
        request = page.deliveries[before]
        is_last = (request.mailbox, request.step) == delivery.cause
        if not is_last and isinstance(request.message, RMUpdateAllocation):
            first = items_in(delivery.message)[0]
            keys = [(it.application_id, it.key) for it in items_in(request.message)]
            own = {(first.application_id, first.key), (first.application_id, "")}
            assert own.intersection(keys) or first.part is Part.APPLICATION
            led += 1
    assert led > 5, "vacuous: nothing was handled together"


def test_of_a_batch_the_facts_of_the_stimulus_are_printed_and_others_counted(
    churn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    neighbours = 0
    middle = in_the_middle(churn)
    for stimulus, _ in middle[::46]:
        own = {item.key for other, item in middle if other == stimulus}
        assert main(["trace", "show", str(churn), "--stimulus", stimulus]) == 0
        lines = capsys.readouterr().out.splitlines()
        added = [line for line in lines if line.strip().startswith("AskAdded")]
        assert {line.split()[2] for line in added} == own
        neighbours += any(line.endswith("about others") for line in lines)
    assert neighbours, "vacuous: no batch had facts of others"
