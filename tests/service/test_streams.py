"""What a client of the scheduler interface can rely on, whatever others do beside it."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

pytest.importorskip("grpc")
import grpc
from calling import CONFIG, PATIENCE_S, SCHEDULER, Caller, Talk, application, asks, node
from probes import wait_until

from yunikorn_actors import si
from yunikorn_actors.service.rpc import outgoing as outlet
from yunikorn_actors.service.rpc.grpc_server import RpcPart
from yunikorn_actors.service.rpc.managers import Managers
from yunikorn_actors.service.service import Serving

RM = "rm-1"
Code = grpc.StatusCode


@pytest.fixture
def serving(serve: Callable[..., Serving]) -> Serving:
    return serve()


@pytest.fixture
def address(serving: Serving) -> str:
    return serving.parts["grpc"].address


def placed(talk: Talk, count: int) -> list[str]:
    """Hear so many allocations; return their keys in order."""
    keys: list[str] = []
    while len(keys) < count:
        keys.extend(it.allocation_key for it in talk.hear(si.AllocationResponse).new)
    return keys


def set_up(caller: Caller, rm_id: str = RM) -> None:
    """Register, with a node and an application."""
    caller.register(rm_id)
    assert caller.nodes().say(node(rm_id)).hear(si.NodeResponse).accepted
    assert caller.applications().say(application(rm_id)).hear(si.ApplicationResponse).accepted


def state_of(serving: Serving, rm_id: str = RM) -> str:
    manager = serving.core.state_dump()["managers"].get(rm_id)
    return "gone" if manager is None else str(manager["state"])


def managers_of(serving: Serving) -> Managers:
    part = serving.parts["grpc"]
    assert isinstance(part, RpcPart)
    return part._managers


def test_asks_are_placed_and_each_is_told_once(address: str) -> None:
    with Caller(address) as caller:
        set_up(caller)
        stream = caller.allocations().say(asks(RM, *map(str, range(1_000))))
        assert Counter(map(str, range(1_000))) == Counter(placed(stream, 1_000))


# -- refusals


def test_what_is_malformed_ends_its_stream_alone(address: str) -> None:
    with Caller(address) as caller:
        caller.register(RM)
        good = caller.nodes().say(node(RM))
        assert good.hear(si.NodeResponse).accepted
        bad = caller.allocations().say(si.AllocationRequest(rm_id=RM)).say(b"\xff")
        assert Code.INVALID_ARGUMENT == bad.code()
        assert good.say(node(RM, "node-2")).hear(si.NodeResponse).accepted


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (asks("rm-2", "a"), "this stream belongs to 'rm-1', not to 'rm-2'"),
        (asks(RM, ""), r"asks\[0\]\.allocation_key: must not be empty"),
    ],
    ids=["another manager", "no key"],
)
def test_a_request_without_sense_is_refused_with_its_place(
    address: str, request_: si.AllocationRequest, says: str
) -> None:
    with Caller(address) as caller:
        caller.register(RM)
        stream = caller.allocations().say(si.AllocationRequest(rm_id=RM)).say(request_)
        assert Code.INVALID_ARGUMENT == stream.code()
        assert re.search(says, stream.details())


def test_who_is_not_registered_is_told_so(address: str) -> None:
    with Caller(address) as caller:
        for stream in (caller.allocations(), caller.nodes(), caller.applications()):
            stream.say(b"")
            assert Code.FAILED_PRECONDITION == stream.code()
            assert "call RegisterResourceManager first" in stream.details()


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (b"\xff\xff", "INVALID_ARGUMENT", "RegisterResourceManagerRequest"),
        (si.RegisterResourceManagerRequest(), "INVALID_ARGUMENT", r"rm_id: must not be empty"),
        (
            si.RegisterResourceManagerRequest(rm_id=RM, config="partitions: 7"),
            "INVALID_ARGUMENT",
            "partitions",
        ),
        (
            si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG + "          - name: more"),
            "FAILED_PRECONDITION",
            "policy group",
        ),
    ],
    ids=["bytes", "no id", "no configuration", "another configuration"],
)
def test_a_registration_is_refused_with_its_reason(
    address: str, request_: si.RegisterResourceManagerRequest | bytes, code: str, says: str
) -> None:
    with Caller(address) as caller:
        first = si.RegisterResourceManagerRequest(rm_id="first", config=CONFIG)
        method = f"{SCHEDULER}/RegisterResourceManager"
        caller.call(method, first)
        refused, text = caller.refusal(method, request_)
        assert code == refused
        assert re.search(says, text)


def test_a_core_that_is_stopped_is_unavailable(serving: Serving, address: str) -> None:
    with Caller(address) as caller:
        caller.register(RM)
        stream = caller.nodes().say(node(RM))
        assert stream.hear(si.NodeResponse).accepted
        serving.core.stop()
        assert Code.UNAVAILABLE == stream.code()
        method = f"{SCHEDULER}/RegisterResourceManager"
        refused, _ = caller.refusal(method, si.RegisterResourceManagerRequest(rm_id=RM))
        assert "UNAVAILABLE" == refused


# -- what is not read


def test_what_comes_before_its_stream_waits_for_it(address: str) -> None:
    with Caller(address) as caller:
        caller.register(RM)
        assert caller.nodes().say(node(RM)).hear(si.NodeResponse).accepted
        # The application runs once its work is placed; that is told on a stream that comes later.
        applications = caller.applications().say(application(RM))
        assert applications.hear(si.ApplicationResponse).accepted
        applications.cancel()
        stream = caller.allocations().say(asks(RM, "a"))
        assert ["a"] == placed(stream, 1)
        again = caller.applications().say(si.ApplicationRequest(rm_id=RM))
        states: list[str] = []
        while "Running" not in states:
            states += [it.state for it in again.hear(si.ApplicationResponse).updated]


def test_one_that_does_not_read_loses_nothing_and_holds_nobody_back(
    serving: Serving, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "ROOM", 10)
    with Caller(address) as deaf, Caller(address) as other:
        set_up(deaf, "deaf")
        set_up(other, "other")
        said = [f"{n}" for n in range(400)]
        silent = deaf.allocations()
        for key in said:
            silent.say(asks("deaf", key))
        allocated = lambda: serving.core.state_dump()["partitions"]["[deaf]default"]["allocations"]  # noqa: E731
        wait_until(lambda: allocated() == len(said))
        keys = [f"{n}" for n in range(100)]
        assert Counter(keys) == Counter(placed(other.allocations().say(asks("other", *keys)), 100))
        assert Counter(said) == Counter(placed(silent, len(said)))


def test_one_that_asks_too_fast_waits_and_everything_is_handled(address: str) -> None:
    """With room for few requests in the core: the stream is read no faster than they go."""
    with Caller(address) as fast:
        fast.register(RM, rm_maxUnhandled="2", rm_maxUndelivered="2")
        assert fast.nodes().say(node(RM)).hear(si.NodeResponse).accepted
        assert fast.applications().say(application(RM)).hear(si.ApplicationResponse).accepted
        stream = fast.allocations()
        for n in range(200):
            stream.say(asks(RM, f"{n}"))
        assert Counter(map(str, range(200))) == Counter(placed(stream, 200))


# -- the life of a registration


def test_closing_the_sending_side_ends_nothing(serving: Serving, address: str) -> None:
    with Caller(address) as caller:
        set_up(caller)
        stream = caller.allocations().say(asks(RM, "a"))
        stream.say_no_more()
        assert ["a"] == placed(stream, 1)
        other = caller.talk(f"{SCHEDULER}/UpdateNode").say(si.NodeRequest(rm_id=RM))
        assert other.say(node(RM, "node-2")).hear(si.NodeResponse).accepted
        assert "Running" == state_of(serving)


def test_with_the_last_stream_the_manager_is_lost(serving: Serving, address: str) -> None:
    with Caller(address) as caller:
        set_up(caller)
        stream = caller.allocations().say(asks(RM, "a"))
        assert ["a"] == placed(stream, 1)
        for talk in caller.opened[:-1]:
            talk.cancel()
        time.sleep(0.05)
        assert "Running" == state_of(serving)
        stream.cancel()
        wait_until(lambda: state_of(serving) == "Paused")
        refused = caller.allocations().say(asks(RM, "b"))
        assert Code.FAILED_PRECONDITION == refused.code()


def test_a_connection_that_breaks_ends_its_streams(serving: Serving, address: str) -> None:
    caller = Caller(address)
    set_up(caller)
    caller.channel.close()
    wait_until(lambda: state_of(serving) == "Paused")


def test_it_comes_back_with_a_clean_slate(serving: Serving, address: str) -> None:
    with Caller(address) as caller:
        set_up(caller)
        assert ["a"] == placed(caller.allocations().say(asks(RM, "a")), 1)
    wait_until(lambda: state_of(serving) == "Paused")
    with Caller(address) as caller:
        set_up(caller)
        assert ["a"] == placed(caller.allocations().say(asks(RM, "a")), 1)
        assert "Running" == state_of(serving)


def test_registering_again_ends_the_former_streams(serving: Serving, address: str) -> None:
    with Caller(address) as former, Caller(address) as caller:
        set_up(former)
        caller.register(RM)
        for talk in former.opened:
            assert Code.ABORTED == talk.code()
            assert "rm-1 has registered again" in talk.details()
        # That the former streams have ended is no loss of this registration.
        assert caller.nodes().say(node(RM)).hear(si.NodeResponse).accepted
        assert "Running" == state_of(serving)


def test_registering_again_waits_for_no_stream_that_is_not_read(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet, "ROOM", 2)
    with Caller(address) as former, Caller(address) as caller:
        set_up(former)
        silent = former.allocations()
        for n in range(20):
            silent.say(asks(RM, f"{n}"))
        caller.register(RM)
        assert caller.nodes().say(node(RM)).hear(si.NodeResponse).accepted


def test_a_registration_that_is_refused_leaves_the_former_one_at_work(address: str) -> None:
    with Caller(address) as caller:
        set_up(caller)
        stream = caller.allocations().say(asks(RM, "a"))
        assert ["a"] == placed(stream, 1)
        method = f"{SCHEDULER}/RegisterResourceManager"
        bad = si.RegisterResourceManagerRequest(rm_id=RM, config="partitions: 7")
        assert "INVALID_ARGUMENT" == caller.refusal(method, bad)[0]
        assert ["b"] == placed(stream.say(asks(RM, "b")), 1)


def test_the_same_stream_opened_again_takes_the_place_of_the_first(address: str) -> None:
    with Caller(address) as caller:
        set_up(caller)
        first = caller.allocations().say(asks(RM, "a"))
        assert ["a"] == placed(first, 1)
        second = caller.allocations().say(asks(RM, "b"))
        assert ["b"] == placed(second, 1)
        assert Code.ABORTED == first.code()


def test_managers_come_and_go_at_once(serving: Serving, address: str) -> None:
    with Caller(address) as one, Caller(address) as two:
        for _ in range(20):
            for caller in (one, two):
                caller.register(RM)
        two.register(RM)
        assert two.nodes().say(node(RM)).hear(si.NodeResponse).accepted
        assert "Running" == state_of(serving)


# -- the end


def test_stopping_delivers_what_there_is_and_ends_every_stream(
    serve: Callable[..., Serving],
) -> None:
    serving = serve()
    with Caller(serving.parts["grpc"].address) as caller:
        set_up(caller)
        keys = [f"{n}" for n in range(500)]
        stream = caller.allocations().say(asks(RM, *keys))
        wait_until(lambda: serving.core.state_dump()["issued_uuids"] > 0)
        began = time.monotonic()
        stopping = threading.Thread(target=serving.stop)
        stopping.start()
        # What comes too late is not taken, and keeps nothing from being delivered.
        wait_until(lambda: managers_of(serving).is_closing)
        stream.say(asks(RM, "late"))
        stopping.join(PATIENCE_S)
        assert time.monotonic() - began < PATIENCE_S
        assert Counter(keys) == Counter(placed(stream, 500))
        assert Code.UNAVAILABLE == stream.code()
