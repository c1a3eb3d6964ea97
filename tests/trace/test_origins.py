"""The way of each item begins at what brought it, whatever it was handled together with."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import ranges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from playing import Player
from recorded_workloads import SMALL, deliveries_of, recorded
from recordings import NEVER_RELEASED, SUBMITTERS, Tape, in_service
from ways import faults

from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import CONTEXT, Cause, Delivery, is_manager
from yunikorn_actors.messages.rm_calls import CallUpdateAllocation
from yunikorn_actors.messages.scheduling import ProposeAllocations
from yunikorn_actors.trace.chain import downwards, upwards
from yunikorn_actors.trace.origins.item_origins import origins
from yunikorn_actors.trace.origins.items import Item, items_in
from yunikorn_actors.trace.origins.origin_queries import InMemory


def told(deliveries: Iterable[Delivery]) -> Iterator[tuple[Delivery, Item]]:
    """Yield each item that a resource manager is told of."""
    for delivery in deliveries:
        if is_manager(delivery.mailbox):
            yield from ((delivery, item) for item in items_in(delivery.message))


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("name", list(SMALL))
def test_each_item_of_a_workload_begins_at_its_own_call(
    name: str, topology: TopologyName, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    deliveries = deliveries_of(recorded(name, topology, tmp_path / "run.trace"))
    assert [] == faults(deliveries, seen)
    assert seen["ASK"] > 50
    if name == "W5":
        assert seen["together"] > 100, "vacuous: hardly anything was handled together"
    else:
        assert seen["asked back"] >= 10, "vacuous: hardly anything was asked back"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_item_of_a_service_begins_at_its_own_call(
    topology: TopologyName, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    deliveries = deliveries_of(in_service(tmp_path / "run.trace", topology))
    assert [] == faults(deliveries, seen)
    # Releases race with the asks that they name. The last asks of each submitter are not released.
    assert seen["ASK"] >= NEVER_RELEASED * SUBMITTERS


def test_what_a_scheduler_proposed_came_of_what_it_was_told_itself(tmp_path: Path) -> None:
    """The name of its mailbox begins that of the other scheduler, which is told the same."""
    deliveries = deliveries_of(in_service(tmp_path / "run.trace", schedulers=2))
    recorded, proposed = InMemory(deliveries), Counter[str]()
    for delivery in deliveries:
        if isinstance(delivery.message, ProposeAllocations):
            for item in items_in(delivery.message):
                (*_, told, _) = origins(recorded, delivery, item)
                assert told.delivery.mailbox in {delivery.sender, CONTEXT}
                proposed[told.delivery.mailbox] += 1
    assert len(proposed) > 1, f"vacuous: {proposed}"


@ranges.examples(6, 1_000)
def test_each_item_of_any_run_begins_where_it_should(examples: int, tmp_path: Path) -> None:
    """What a random resource manager does; nobody wrote it for this."""
    seen: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(scripts(60), st.sampled_from(TOPOLOGIES), st.integers(1, 2**32 - 1), st.booleans())
    def play(script: list[Move], topology: TopologyName, number: int, at_once: bool) -> None:
        path = tmp_path / "run.trace"
        tape = Tape(path, topology, 1)
        player = Player(topology, number, confirms_at_once=at_once, checkers=(tape,))
        for move in script:
            player.play(move)
        player.simulator.settle()
        tape.end(player.simulator)
        assert [] == faults(deliveries_of(path), seen)

    (seed(7)(play) if examples <= 100 else play)()
    missing = {"ASK", "END", "APPLICATION", "together", "asked back", "timer"} - {*+seen}
    assert not missing, f"vacuous: never seen: {missing}"


# -- on the disk


@pytest.fixture(scope="module")
def churn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded("W5", "proposing", tmp_path_factory.mktemp("churn") / "run.trace")


def test_a_chain_read_from_the_disk_is_that_in_memory(churn: Path) -> None:
    deliveries = deliveries_of(churn)
    memory = InMemory(deliveries)
    for delivery, item in list(told(deliveries))[::17]:
        links = upwards(
            Cause(delivery.mailbox, delivery.step), churn, f"{item.application_id}/{item.key}"
        )
        way = origins(memory, delivery, item)
        assert [it.delivery for it in way] == [it.delivery for it in links]
        assert links[-1].is_wanted
        for link, before in zip(links[1:], links, strict=False):
            own = Cause(before.delivery.mailbox, before.delivery.step)
            is_cause = link.delivery.cause == own or before.together > 1
            assert is_cause is (link.set_off_by is None)


def test_no_request_ends_at_context_without_a_word(churn: Path) -> None:
    """What each one led to has its items; today's neighbours are left out."""
    deliveries = deliveries_of(churn)
    requests = [
        it
        for it in deliveries
        if it.mailbox == CONTEXT and isinstance(it.message, rm.RMUpdateAllocation)
    ]
    middle = [one for one, other in pairwise(requests) if other.joined]
    assert len(middle) > 50, "vacuous: hardly anything was handled together"
    for request in middle[::19]:
        links = downwards(Cause(request.mailbox, request.step), churn)
        items = items_in(request.message)
        # A placement may bring its application into another state, which names the application alone.
        names = {name for it in items for name in (*it.names, it.application_id)}
        assert len(links) > 1
        for link in links:
            of_link = items_in(link.delivery.message)
            assert not of_link or any(
                not names.isdisjoint((*it.names, it.application_id)) for it in of_link
            )


def test_it_says_what_was_handled_together_and_which_item_it_follows(
    churn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [
        it
        for it in deliveries_of(churn)
        if isinstance(it.message, CallUpdateAllocation) and len(it.message.response.new) > 2
    ]
    call = calls[len(calls) // 2]
    last = items_in(call.message)[-1]
    step = f"{call.mailbox}/{call.step}"
    assert main(["trace", "chain", str(churn), step]) == 0
    first = capsys.readouterr().out
    assert f"{len(items_in(call.message)) - 1} more: --about" in first
    assert main(["trace", "chain", str(churn), step, "--about", last.key, "--json"]) == 0
    links = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert last.key in json.dumps(links[0]["delivery"])
    assert {last.key} == {it["about"] for it in links}
    assert main(["trace", "chain", str(churn), step, "--about", "nobody"]) == 1
    assert f"{step} is not about 'nobody'" in capsys.readouterr().err
    assert main(["trace", "chain", str(churn), step, "--causes"]) == 0
    assert first != capsys.readouterr().out
