"""What a program does with a scheduler: nodes, applications, asks, leases and their ends."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, wait
from pathlib import Path

import pytest
from fronting import PATIENCE_S, QUEUES, events_until, quick_core, raised
from probes import wait_until

from yunikorn_actors import (
    Application,
    ApplicationChanged,
    ApplicationEnded,
    ApplicationRejected,
    AskRejected,
    AskWithdrawn,
    ConfigError,
    CoreStopped,
    Duplicate,
    InvalidRequest,
    Lease,
    Placed,
    QuantityError,
    Running,
    Scheduler,
    SchedulerClosed,
    SchedulerCore,
    UnknownAsk,
    UnknownName,
    si,
)


def test_an_ask_gets_a_lease() -> None:
    with Scheduler(QUEUES) as s:
        assert [] == s.add_node("n1", vcore=4, memory="8Gi")
        app = s.application("etl", queue="root.batch", user="ann")
        lease = app.ask("t1", vcore="500m", memory="2Gi").result(PATIENCE_S)
        assert ("n1", "etl", "t1", "held") == (
            lease.node_id,
            lease.application,
            lease.key,
            lease.state,
        )
        assert [lease] == app.leases
        with lease:
            used = s.core.state_dump()["partitions"]["[rm-1]default"]["nodes"]["n1"]["allocated"]
            assert {"vcore": 500, "memory": 2 << 30} == used
        assert "released" == lease.state
        assert not lease.wanted_back.is_set()
        assert [] == app.leases
        lease.release()
        assert "released" == lease.state


def test_without_queues_there_is_an_open_one() -> None:
    with Scheduler() as s:
        s.add_node("n1", vcore=1)
        assert s.application("a", user="ann").ask("t", vcore=1).result(PATIENCE_S).node_id == "n1"


def test_queues_are_a_file_a_text_or_a_mapping(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES)
    mapping = {
        "partitions": [
            {
                "name": "default",
                "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "batch"}]}],
            }
        ]
    }
    for queues in (file, str(file), QUEUES, mapping):
        with Scheduler(queues) as s:
            assert "root.batch" == s.application("a", queue="root.batch", user="ann").queue


def test_bad_queues_are_refused_when_the_scheduler_is_made() -> None:
    assert "unknown key 'nam'" in raised(lambda: Scheduler("partitions: [{nam: x}]"), ConfigError)
    assert "set" in raised(lambda: Scheduler({"partitions": {1, 2}}), InvalidRequest)
    assert "list" in raised(lambda: Scheduler([]), InvalidRequest)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        Scheduler("nothing.yaml")


def test_another_configuration_can_be_loaded() -> None:
    with Scheduler(QUEUES) as s:
        raised(lambda: s.application("a", queue="root.new", user="ann"), ApplicationRejected)
        s.configure(QUEUES + "    - {name: new, submitacl: '*'}\n")
        s.application("a", queue="root.new", user="ann")


# -- amounts


def test_amounts_are_those_of_the_configuration() -> None:
    parsed = si.Resource.parse({"nvidia.com/gpu": 2}, vcore="500m", memory="2Gi")
    assert {"nvidia.com/gpu": 2, "vcore": 500, "memory": 2 << 30} == parsed.amounts()
    assert {"vcore": 16_000} == si.Resource.parse(vcore=16).amounts()


@pytest.mark.parametrize(
    "amount", [-1, 0.5, True, None, "", "2 apples", "1e3", 10**30, "9" * 5000], ids=range(9)
)
def test_what_is_no_amount_is_refused(amount: object) -> None:
    assert raised(lambda: si.Resource.parse(vcore=amount), QuantityError).startswith("vcore: ")  # type: ignore[arg-type]


# -- what is refused at the call


def test_what_is_refused_is_named_as_the_program_calls_it() -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.batch", user="ann")
        size = {"k" * 2_000: 1}
        for call, named in (
            (lambda: app.ask("x", vcore=1, priority="high"), "ask: priority: "),  # type: ignore[call-overload]
            (lambda: app.ask("x", vcore=1, tags={"k": 1}), "ask: tags['k']: "),  # type: ignore[dict-item]
            (lambda: app.ask("x" * 2_000, vcore=1), "ask: key: "),
            (lambda: app.ask("x", resources=size), "ask: resources['"),
            (lambda: s.add_node("n", vcore=1, attributes={"k": 1}), "add_node: attributes['k']: "),  # type: ignore[dict-item]
            (lambda: s.add_node("n", resources=size), "add_node: resources['"),
            (lambda: s.application("b", user=7), "application: user: "),  # type: ignore[arg-type]
            (lambda: s.application("b", user="ann", queue=7), "application: queue: "),  # type: ignore[arg-type]
            (lambda: s.application("b", user="ann", groups=[7]), "application: groups[0]: "),  # type: ignore[list-item]
        ):
            said = raised(call, InvalidRequest)
            assert said.startswith(named), said[:200]


def test_a_question_about_what_is_no_name_is_refused() -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.batch", user="ann")
        assert "explain.key: " in raised(lambda: app.explain([]), InvalidRequest)  # type: ignore[arg-type]
        assert "explain.application: " in raised(lambda: s.explain({}, "k"), InvalidRequest)  # type: ignore[arg-type]
        assert "events: [] is none of " in raised(lambda: s.events([]), InvalidRequest)  # type: ignore[arg-type]


def test_a_name_as_long_as_a_book_is_not_told_whole() -> None:
    long = "x" * 1_000_000
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.batch", user="ann")
        for said in (
            raised(lambda: s.drain(long), UnknownName),
            raised(lambda: app.ask("k", vcore=1, group=long), UnknownName),
            raised(lambda: s.events(long), InvalidRequest),  # type: ignore[arg-type]
            raised(lambda: app.explain(long), InvalidRequest),
        ):
            assert len(said) < 300


def test_what_contradicts_what_is_there_is_refused_at_the_call() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        app.ask("held", vcore=1).result(PATIENCE_S)
        waits = app.ask("waits", vcore=100)
        assert "remove_node('n1') first" in raised(lambda: s.add_node("n1", vcore=1), Duplicate)
        assert "close() it first" in raised(lambda: s.application("a", user="ann"), Duplicate)
        assert "has a lease on n1" in raised(lambda: app.ask("held", vcore=1), Duplicate)
        assert "waits to be placed" in raised(lambda: app.ask("waits", vcore=1), Duplicate)
        assert "(there: n1)" in raised(lambda: s.drain("n2"), UnknownName)
        said = raised(lambda: app.ask("x", vcore=1, required_node=7), InvalidRequest)  # type: ignore[call-overload]
        assert "required_node" in said.partition(":")[2]
        assert "tags" not in said
        assert "without gang=" in raised(lambda: app.ask("x", vcore=1, group="g"), UnknownName)
        raised(lambda: app.ask("later"), InvalidRequest)
        assert waits.cancel()
        assert "n1" == app.ask("later", vcore=1).result(PATIENCE_S).node_id


SENSELESS: dict[str, tuple[Callable[[Scheduler, Application], object], str]] = {
    "no amount": (lambda _, app: app.ask("x"), "ask: say how much it needs"),
    "empty key": (lambda _, app: app.ask("", vcore=1), "ask: '' is no key"),
    "amount twice": (lambda _, app: app.ask("x", vcore=1, resources={"vcore": 1}), "ask: vcore is given twice"),
    "no repeat": (lambda _, app: app.ask("x", vcore=1, count=0), "ask: count: "),
    "more than one request takes": (lambda _, app: app.ask("x", vcore=1, count=100_001), "ask: count: must be a whole number from 1 to 100000"),
    "groups of more than one request takes": (
        lambda s, _: s.application("g", user="ann", gang={name: {"count": 60_000, "vcore": 1} for name in "ab"}),
        "gang: asks: must have at most 100000 items",
    ),
    "huge priority": (lambda _, app: app.ask("x", vcore=1, priority=2**40), "ask: priority: "),
    "long key": (lambda _, app: app.ask("x" * 2000, vcore=1), "ask: key: must be at most 1024"),
    "fits is a text": (lambda _, app: app.ask("x", vcore=1, fits="n1"), "ask: fits: "),  # type: ignore[call-overload]
    "node of no size": (lambda s, _: s.add_node("n2"), "add_node: say how large it is"),
    "node without id": (lambda s, _: s.add_node("", vcore=1), "add_node: '' is no id"),
    "attributes": (lambda s, _: s.add_node("n2", vcore=1, attributes=[1]), "add_node: attributes: "),  # type: ignore[arg-type]
    "application without id": (lambda s, _: s.application("", user="ann"), "application: '' is no id"),
    "timeout": (lambda s, _: s.application("b", user="ann", timeout="soon"), "application: timeout: 'soon' is no time"),
    "size of a member": (lambda s, _: s.application("b", user="ann", gang={"g": {"count": 2}}), "gang: g: say how much"),
    "gang of none": (lambda s, _: s.application("b", user="ann", gang={"g": {"count": 0, "vcore": 1}}), "gang: g: count: "),
    "gang": (lambda s, _: s.application("b", user="ann", gang=[1]), "gang: must be a mapping"),  # type: ignore[arg-type]
    "gang style": (lambda s, _: s.application("b", user="ann", gang_style="hardish"), "gang_style: must be 'Soft' or 'Hard'"),  # type: ignore[arg-type]
    "running of mappings": (lambda s, _: s.application("b", user="ann", running=[{"key": "x"}]), "running: must hold Running"),  # type: ignore[list-item]
    "running": (lambda s, _: s.application("b", user="ann", running=None), "application: running: must be a list"),  # type: ignore[arg-type]
    "groups": (lambda s, _: s.application("b", user="ann", groups="dev"), "application: groups: must be a list"),
    "tags": (lambda s, _: s.application("b", user="ann", tags=[1]), "application: tags: "),  # type: ignore[arg-type]
    "kind of event": (lambda s, _: s.events("placed", "nonsense"), "events: 'nonsense' is none of "),  # type: ignore[arg-type]
    "no queues": (lambda s, _: s.configure(None), "queues: must be a file"),  # type: ignore[arg-type]
    "grace": (lambda *_: Scheduler(grace=-1), "grace: must be seconds"),
    "core": (lambda *_: Scheduler(core=5), "core: must be a SchedulerCore"),  # type: ignore[arg-type]
    "rm_id": (lambda *_: Scheduler(rm_id=5), "rm_id: must be text"),  # type: ignore[arg-type]
    "callback": (lambda *_: Scheduler(callback=si.ResourceManagerCallback), "callback: must be a ResourceManagerCallback"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("case", SENSELESS)
def test_what_makes_no_sense_is_refused_at_the_call(case: str) -> None:
    call, text = SENSELESS[case]
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.batch", user="ann")
        said = raised(lambda: call(s, app), InvalidRequest)
    assert text in said


@pytest.mark.parametrize(
    ("queue", "reason"),
    [("root.nope", "no queue root.nope"), ("root", "may not submit"), ("root.closed", "permitted")],
)
def test_an_application_that_is_rejected_says_why(queue: str, reason: str) -> None:
    with Scheduler(QUEUES) as s:
        told = raised(lambda: s.application("a", queue=queue, user="ann"), ApplicationRejected)
        assert reason in told
        s.application("a", queue="root.batch", user="ann")


def test_an_ask_that_is_rejected_says_why() -> None:
    with Scheduler(QUEUES) as s:
        app = s.application("a", queue="root.batch", user="ann")
        future = app.ask("zero", vcore=0)
        told = raised(lambda: future.result(PATIENCE_S), AskRejected)
        assert "ask 'zero' of 'a' was rejected: allocation contains no resources" == told
        assert told in str(app.explain("zero"))
        app.ask("zero", vcore=0)


# -- cancelling


def test_cancelling_withdraws_the_ask() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        futures = [app.ask("big", vcore=100), app.ask("other", vcore=100)]
        assert futures[0].cancel()
        assert futures[0].cancel()
        done, _ = wait(futures, timeout=PATIENCE_S, return_when="FIRST_COMPLETED")
        assert {futures[0]} == done
        with pytest.raises(CancelledError):
            futures[0].result()
        assert "withdrawn" == app.explain("big").state
        assert "n1" == app.ask("big", vcore=1).result(PATIENCE_S).node_id


def test_an_ask_that_was_just_placed_is_given_back() -> None:
    """Its placement is on the way while the program cancels, and asks again by the same key."""
    is_told, go_on = threading.Event(), threading.Event()
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=6)
        app = s.application("a", queue="root.batch", user="ann")
        tell = s._operations.callback.update_allocation

        def held(response: si.AllocationResponse) -> None:
            if response.new:
                is_told.set()
                assert go_on.wait(PATIENCE_S)
            tell(response)

        s._operations.callback.update_allocation = held  # type: ignore[method-assign]
        first = app.ask("t", vcore=3)
        assert is_told.wait(PATIENCE_S)
        assert first.cancel()
        second = app.ask("t", vcore=3)
        go_on.set()
        lease = second.result(PATIENCE_S)
        assert "n1" == app.ask("last", vcore=3).result(PATIENCE_S).node_id
        assert ("held", False) == (lease.state, lease.wanted_back.is_set())
        lease.release()
        assert "n1" == app.ask("t", vcore=3).result(PATIENCE_S).node_id


# -- several at once, conditions


def test_a_count_is_a_list_of_futures() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=2)
        app = s.application("a", queue="root.batch", user="ann")
        futures = app.ask("t", vcore=1, count=3)
        leases = [future.result(PATIENCE_S) for future in futures[:2]]
        assert ["t-1", "t-2"] == [lease.key for lease in leases]
        assert not futures[2].done()
        raised(lambda: app.ask("t", vcore=1, count=4), Duplicate)
        leases[0].release()
        assert "t-3" == futures[2].result(PATIENCE_S).key


def test_fits_has_a_say() -> None:
    asked: list[str] = []

    def fits(node_id: str) -> bool:
        asked.append(node_id)
        return node_id == "n2"

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        s.add_node("n2", vcore=4)
        a, b = (s.application(name, queue="root.batch", user="ann") for name in "ab")
        mine = a.ask("t", vcore=1, fits=fits)
        others = [b.ask(key, vcore=1) for key in ("t", "u", "v")]
        assert "n2" == mine.result(PATIENCE_S).node_id
        assert "n2" in asked
        count = len(asked)
        assert {"n1", "n2"} == {it.result(PATIENCE_S).node_id for it in others}
        assert count == len(asked), "another ask of the same key was asked about"
        assert "n2" == b.ask("w", vcore=1, fits=fits).result(PATIENCE_S).node_id


def test_a_fits_that_returns_what_is_to_be_awaited_is_a_no_that_says_so() -> None:
    async def later(node_id: str) -> bool:
        return bool(node_id)

    def fits(node_id: str) -> object:
        return later(node_id)

    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        future = app.ask("t", vcore=1, fits=fits)
        wait_until(lambda: "is for AsyncScheduler" in app.explain("t").text)
        assert not future.done()


def test_an_empty_mapping_is_an_empty_configuration() -> None:
    # Empty as a text: the core makes a queue for each namespace.
    for queues in ("", {}):
        with Scheduler(queues) as s:
            with pytest.raises(ApplicationRejected):
                s.application("a", user="ann")
            assert s.application("b", queue="", user="ann", tags={"namespace": "dev"})
            s.configure(queues)


def test_what_is_no_amount_says_what_is_one() -> None:
    with Scheduler(QUEUES) as s:
        for amount in ("1GB", -1, 2**63, 0.5):
            said = raised(lambda: s.add_node("n", memory=amount), QuantityError)  # type: ignore[arg-type] # noqa: B023
            assert "text such as '500m' or '64Gi'" in said


def test_a_required_node() -> None:
    with Scheduler(QUEUES) as s:
        for name in ("n1", "n2", "n3"):
            s.add_node(name, vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        futures = app.ask("t", vcore=1, required_node="n2", count=3)
        assert {"n2"} == {future.result(PATIENCE_S).node_id for future in futures}


# -- nodes


def test_a_drained_node_gets_nothing_until_it_is_resumed() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        s.drain("n1")
        app = s.application("a", queue="root.batch", user="ann")
        future = app.ask("t", vcore=1)
        wait_until(lambda: "taking no work" in str(app.explain("t")))
        assert not future.done()
        s.resume("n1")
        assert "n1" == future.result(PATIENCE_S).node_id


def test_a_lease_is_lost_with_its_node() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        lease = app.ask("t", vcore=1).result(PATIENCE_S)
        s.remove_node("n1")
        assert lease.wanted_back.wait(PATIENCE_S)
        assert ("lost", "Node n1 Removed") == (lease.state, lease.reason)
        assert lease.lost
        assert [] == list(s.nodes)
        s.add_node("n1", vcore=4)
        assert "held" == app.ask("t", vcore=1).result(PATIENCE_S).state


# -- wanted back


def preempted(s: Scheduler) -> Lease:
    s.add_node("n1", vcore=4)
    batch = s.application("b", queue="root.batch", user="ann")
    return batch.ask("t", vcore=4).result(PATIENCE_S)


def test_a_preempted_lease_is_wanted_back_and_its_room_goes_on_when_it_is_released() -> None:
    with Scheduler(QUEUES, grace=PATIENCE_S * 10) as s:
        lease = preempted(s)
        sure = s.application("s", queue="root.sure", user="bob").ask("u", vcore=4)
        assert lease.wanted_back.wait(PATIENCE_S)
        assert "wanted back" == lease.state
        assert lease.reason
        assert not sure.done()
        lease.release()
        assert "n1" == sure.result(PATIENCE_S).node_id
        assert "released" == lease.state


def test_a_lease_that_is_not_given_back_is_lost_after_the_grace_time() -> None:
    with Scheduler(QUEUES, grace=0.01) as s:
        lease = preempted(s)
        with s.events("lease_over", "wanted_back") as events:
            sure = s.application("s", queue="root.sure", user="bob").ask("u", vcore=4)
            assert "n1" == sure.result(PATIENCE_S).node_id
            assert ["wanted_back", "lease_over"] == [next(events).kind, next(events).kind]
        assert lease.wanted_back.is_set()
        assert ("lost", True) == (lease.state, "it was not released within 0.01 s" in lease.reason)
        lease.release()
        assert "lost" == lease.state


# -- applications


def test_an_application_without_work_completes_unless_it_stays() -> None:
    with Scheduler(QUEUES, core=quick_core()) as s:
        s.add_node("n1", vcore=4)
        with s.events("application") as events:
            app = s.application("a", queue="root.batch", user="ann")
            stays = s.application("b", queue="root.batch", user="ann", stays=True)
            for it in (stays, app):
                it.ask("t", vcore=1).result(PATIENCE_S).release()
            event = events_until(events, "Completed")[-1]
        assert "a" == event.application
        told = raised(lambda: app.ask("u", vcore=1), ApplicationEnded)
        assert "is Completed" in told
        assert "stays=True" in told
        assert "n1" == stays.ask("u", vcore=1).result(PATIENCE_S).node_id
        again = s.application("a", queue="root.batch", user="ann")
        assert "n1" == again.ask("t", vcore=1).result(PATIENCE_S).node_id


def test_a_closed_application_has_nothing_any_more() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        with s.application("a", queue="root.batch", user="ann") as app:
            lease = app.ask("t", vcore=3).result(PATIENCE_S)
            waits = app.ask("u", vcore=3)
        assert lease.lost
        assert lease.wanted_back.is_set()
        assert "was closed" in lease.reason
        raised(lambda: waits.result(PATIENCE_S), ApplicationEnded)
        raised(lambda: app.ask("v", vcore=1), ApplicationEnded)
        app.close()
        again = s.application("a", queue="root.batch", user="ann")
        lease = again.ask("t", vcore=3).result(PATIENCE_S)
        assert "n1" == again.ask("u", vcore=1).result(PATIENCE_S).node_id
        assert "held" == lease.state


def test_an_application_that_runs_out_of_time_fails() -> None:
    with Scheduler(QUEUES) as s, s.events("application") as events:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann", timeout="20ms")
        lease = app.ask("t", vcore=3).result(PATIENCE_S)
        waits = app.ask("u", vcore=3)
        raised(lambda: waits.result(PATIENCE_S), AskWithdrawn)
        assert lease.wanted_back.wait(PATIENCE_S)
        lease.release()
        states = [event.state for event in events_until(events, "Failed")]
        assert ["Accepted", "Running", "Failing", "Failed"] == states
        assert "is Failed" in raised(lambda: app.ask("v", vcore=1), ApplicationEnded)


# -- what there is to see


def test_explain_knows_asks_in_every_state() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=16)
        app = s.application("a", queue="root.batch", user="ann")
        app.ask("runs", vcore=6).result(PATIENCE_S)
        app.ask("waits", vcore=3)
        wait_until(lambda: app.explain("waits").why is not None)
        waits = app.explain("waits")
        assert ("waiting", True) == (waits.state, "root.batch" in str(waits))
        assert ("placed", "n1") == (app.explain("runs").state, app.explain("runs").node_id)
        assert "runs of a: placed; it runs on n1" == str(s.explain("a", "runs"))
        app.leases[0].release()
        assert "released" == app.explain("runs").state
        raised(lambda: app.explain("other"), UnknownAsk)
        app.close()
        assert "was closed" in str(s.explain("a", "waits"))


def test_events_are_told_apart() -> None:
    with Scheduler(QUEUES) as s, s.events() as events:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        app.ask("t", vcore=1).result(PATIENCE_S)
        seen: list[str] = []
        for event in events:
            match event:
                case Placed(lease=lease):
                    seen.append(f"{lease.key} on {lease.node_id}")
                    break
                case ApplicationChanged(application=name, state=state):
                    seen.append(f"{name} {state}")
                case _:
                    seen.append(event.kind)
    assert ["node", "a Accepted", "t on n1"] == seen


def test_the_custom_callback_hears_and_answers() -> None:
    heard: list[str] = []

    class Mine(si.ResourceManagerCallback):
        def predicates(self, args: si.PredicatesArgs) -> str | None:
            return "no disk" if args.node_id == "n1" else None

        def update_allocation(self, response: si.AllocationResponse) -> None:
            heard.extend(new.node_id for new in response.new)

        def get_state_dump(self) -> str:
            return '{"mine": 1}'

    with Scheduler(QUEUES, callback=Mine()) as s:
        s.add_node("n1", vcore=4)
        s.add_node("n2", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        assert "n2" == app.ask("t", vcore=1).result(PATIENCE_S).node_id
        wait_until(lambda: heard)
        assert ["n2"] == heard
        assert {"mine": 1} == s.core.state_dump()["rm_diagnostics"]["rm-1"]


# -- recovery


def test_work_that_runs_already_has_its_lease() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        kept = app.ask("t", vcore="1500m", priority=3).result(PATIENCE_S).running
    assert (
        Running(application="a", key="t", node_id="n1", resources={"vcore": "1500m"}, priority=3)
        == kept
    )
    with Scheduler(QUEUES) as s:
        raised(lambda: s.add_node("n1", vcore=4, running=[kept]), UnknownName)
        app = s.application("a", queue="root.batch", user="ann", running=[kept])
        raised(lambda: s.add_node("n2", vcore=4, running=[kept]), UnknownName)
        raised(lambda: s.add_node("n1", vcore=4, running=[kept, kept]), Duplicate)
        [lease] = s.add_node("n1", vcore=4, running=[kept])
        assert kept == lease.running
        assert [lease] == app.leases
        assert "placed" == app.explain("t").state
        other = app.ask("u", vcore=3)
        wait_until(lambda: app.explain("u").why is not None)
        assert not other.done()
        lease.release()
        assert "n1" == other.result(PATIENCE_S).node_id


# -- the end


def test_when_it_is_closed_everything_ends() -> None:
    with Scheduler(QUEUES) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        lease = app.ask("t", vcore=3).result(PATIENCE_S)
        waits = app.ask("u", vcore=3)
        events = s.events("not_placed")
    assert "the scheduler was closed" == raised(lambda: waits.result(0), SchedulerClosed)
    assert lease.lost
    assert lease.wanted_back.is_set()
    lease.release()
    assert ["u"] == [event.key for event in events if event.kind == "not_placed"]
    for call in (
        lambda: app.ask("v", vcore=1),
        lambda: s.add_node("n2", vcore=1),
        lambda: s.application("b", user="ann"),
        lambda: s.explain("a", "t"),
        lambda: s.configure(QUEUES),
        s.events,
        lambda: s.drain("n1"),
    ):
        raised(call, SchedulerClosed)
    app.close()
    s.close()


def test_before_its_start_it_says_how_to_start() -> None:
    s = Scheduler(QUEUES)
    assert "start()" in raised(lambda: s.add_node("n1", vcore=1), SchedulerClosed)
    s.close()


def test_closing_a_front_that_was_refused_leaves_the_core_to_the_other() -> None:
    core = SchedulerCore()
    with Scheduler(QUEUES, core=core) as s:
        s.add_node("n1", vcore=4)
        app = s.application("a", queue="root.batch", user="ann")
        lease = app.ask("t", vcore=1).result(PATIENCE_S)
        other = Scheduler(QUEUES, core=core, rm_id="rm-2")
        with pytest.raises(CoreStopped, match="a core is started once"):
            other.start()
        other.close()
        with pytest.raises(CoreStopped, match="a core is started once"):
            s.start()
        assert "held" == lease.state
        assert "u" == app.ask("u", vcore=1).result(PATIENCE_S).key
    assert "lost" == lease.state, "a front that was refused its second start still stops its core"
