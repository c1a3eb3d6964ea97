"""A conversation that ends at an awkward moment, or by what it carries: its program learns so."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("grpc")
import grpc
from calling import CONFIG, application, asks, node
from fronting import quick_core
from probes import wait_until

from yunikorn_actors import (
    ConnectionLost,
    CoreError,
    CoreStopped,
    RemoteCore,
    ResourceManagerCallback,
    UnknownResourceManager,
    si,
)
from yunikorn_actors.runtime.event_streams import Feed
from yunikorn_actors.runtime.failure_hooks import CallbackRaised
from yunikorn_actors.service.rpc import conversation as conversations
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.rpc.conversation import ROOM, Conversation, Outgoing
from yunikorn_actors.service.service import Serving

PATIENCE_S = 30.0
RM = "rm-1"
BROKEN = ConnectionLost("broken")


def registration(rm_id: str = RM) -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=rm_id, config=CONFIG)


class Errors:
    def error_of(self, raised: Any) -> Exception:
        return ConnectionLost(str(raised))

    end_of = error_of


class Call(Iterator[bytes]):
    """What the other side says, and then how it ends."""

    def __init__(self, said: list[bytes], end: Callable[[], object]) -> None:
        self._said = iter(said)
        self._end = end
        self.is_cancelled = threading.Event()

    def __next__(self) -> bytes:
        for data in self._said:
            return data
        self._end()
        raise StopIteration

    def cancel(self) -> None:
        self.is_cancelled.set()


REGISTERED = conversations.codec(m.Told).encode(
    m.Told(registered=si.RegisterResourceManagerResponse())
)


class Link:
    """Returns a conversation only when `may_return` is set, as a thread that is not scheduled."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.ends = threading.Event()
        self.breaks = False
        """Whether it ends by an error, and not because the manager was unregistered."""
        self.before_it_returns: Callable[[Conversation], object] = lambda _: None

    def register(
        self, request: si.RegisterResourceManagerRequest, *parts: Any, **_: object
    ) -> Conversation:
        callback, raised, over = parts
        made = Conversation(request.rm_id, callback, raised, over, Errors())
        ends, self.ends = self.ends, threading.Event()

        def end() -> None:
            ends.wait(PATIENCE_S)
            if self.breaks:
                raise grpc.RpcError("the service was killed")

        self.calls.append(Call([REGISTERED], end))
        made.open(lambda _: self.calls[-1], request, PATIENCE_S)
        self.before_it_returns(made)
        return made

    def ask(self, *_: object) -> m.Done:
        return m.Done()

    def close(self) -> None:
        pass


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def core(link: Link) -> RemoteCore:
    core = RemoteCore("127.0.0.1:1")
    core._link = link  # type: ignore[assignment]
    return core


def ended(former: threading.Event) -> Callable[[Conversation], None]:
    """Have a conversation end, and its thread, before who has opened it goes on."""

    def end(conversation: Conversation) -> None:
        former.set()
        conversation._thread.join(PATIENCE_S)
        assert not conversation._thread.is_alive()

    return end


def test_a_break_between_the_answer_and_the_return_is_noticed(core: RemoteCore, link: Link) -> None:
    """The service dies when it has accepted, and before the thread that registers goes on."""
    away: list[CoreError] = []
    core.when_away = away.append
    core.away = BROKEN
    link.breaks = True
    link.before_it_returns = ended(link.ends)
    core.register_resource_manager(registration(), ResourceManagerCallback())
    assert len(away) == 1, "the break went unnoticed: it is connected for ever"
    assert core.away is away[0]
    with pytest.raises(ConnectionLost):
        core.submit_checked(si.AllocationRequest(rm_id=RM))


def test_the_same_break_is_the_end_of_a_core_that_does_not_come_back(
    core: RemoteCore, link: Link
) -> None:
    over: list[CoreError | None] = []
    core.when_over.append(lambda: over.append(core.failure))
    link.before_it_returns = ended(link.ends)
    core.register_resource_manager(registration(), ResourceManagerCallback())
    assert [UnknownResourceManager] == [type(it) for it in over]


def test_a_break_while_a_registration_in_its_place_is_refused_is_noticed(
    core: RemoteCore, link: Link
) -> None:
    """The next one was to replace it, so that it ended was no loss; but there is no next one."""
    first, over = link.ends, list[CoreError | None]()
    core.when_over.append(lambda: over.append(core.failure))
    core.register_resource_manager(registration(), ResourceManagerCallback())
    former = core._conversations[RM]

    def refuse(_: Conversation) -> None:
        ended(first)(former)
        raise BROKEN

    link.before_it_returns = refuse
    with pytest.raises(ConnectionLost):
        core.register_resource_manager(registration(), ResourceManagerCallback())
    assert len(over) == 1, "the former conversation has ended, and nobody knows"
    assert not core._conversations


def test_a_stop_during_a_registration_leaves_no_conversation(core: RemoteCore, link: Link) -> None:
    link.before_it_returns = lambda _: core.stop()
    with pytest.raises(CoreStopped):
        core.register_resource_manager(registration(), ResourceManagerCallback())
    assert link.calls[-1].is_cancelled.is_set()
    assert not core._conversations


# -- requests for a conversation that is over


@pytest.mark.parametrize("waits", [True, False])
def test_nothing_is_kept_for_a_conversation_that_is_over(waits: bool) -> None:
    outgoing = Outgoing()
    outgoing.close()
    assert not any(outgoing.put(b"said", waits=waits) for _ in range(ROOM + 1))
    assert not outgoing._kept


def test_who_waits_for_room_learns_that_there_will_be_none() -> None:
    outgoing, taken = Outgoing(), list[bool]()
    for _ in range(ROOM):
        assert outgoing.put(b"said", waits=True)
    waiting = threading.Thread(target=lambda: taken.append(outgoing.put(b"more", waits=True)))
    waiting.start()
    outgoing.close()
    waiting.join(PATIENCE_S)
    assert [False] == taken


def test_a_request_after_the_end_raises_what_has_ended_it(core: RemoteCore, link: Link) -> None:
    """The conversation has closed its way out, and has not come to tell the core of it."""
    reached, may_go_on = threading.Event(), threading.Event()
    lost = core._lost

    def held(conversation: Conversation, error: CoreError) -> None:
        reached.set()
        may_go_on.wait(PATIENCE_S)
        lost(conversation, error)

    core._lost = held  # type: ignore[method-assign]
    ends = link.ends
    core.register_resource_manager(registration(), ResourceManagerCallback())
    ends.set()
    assert reached.wait(PATIENCE_S)
    try:
        with pytest.raises(UnknownResourceManager, match="has unregistered rm-1"):
            core.submit_checked(si.AllocationRequest(rm_id=RM))
    finally:
        may_go_on.set()


def test_a_request_for_a_registration_that_was_replaced_goes_to_the_next(
    core: RemoteCore,
) -> None:
    core.register_resource_manager(registration(), ResourceManagerCallback())
    former = core._conversations[RM]
    find = core._conversation_of
    found: list[Conversation] = []

    def find_the_former_first(rm_id: str) -> Conversation:
        found.append(find(rm_id) if found else former)
        return found[-1]

    core.register_resource_manager(registration(), ResourceManagerCallback())
    core._conversation_of = find_the_former_first  # type: ignore[method-assign]
    core.submit_checked(si.AllocationRequest(rm_id=RM))
    assert [former, core._conversations[RM]] == found
    assert 2 == len(found[-1]._outgoing._kept), "its opening, and the request"


# -- what ends the thread of a conversation


def test_a_message_that_cannot_be_read_ends_the_conversation_and_says_so() -> None:
    lost: list[CoreError] = []
    is_over = threading.Event()

    def over(_: Conversation, error: CoreError) -> None:
        lost.append(error)
        is_over.set()

    call = Call([REGISTERED, b"\xff\xff\xff"], lambda: None)
    made = Conversation(RM, ResourceManagerCallback(), lambda _: None, over, Errors())
    made.open(lambda _: call, registration(), PATIENCE_S)
    assert is_over.wait(PATIENCE_S), "its thread has ended, and nobody knows"
    assert [ConnectionLost] == [type(it) for it in lost]
    assert "cannot be read" in str(lost[0])
    assert call.is_cancelled.is_set()
    assert not made.say(m.Said(allocations=si.AllocationRequest(rm_id=RM)))


def test_an_opening_that_cannot_be_read_is_raised() -> None:
    call = Call([b"\xff\xff\xff"], lambda: None)
    made = Conversation(RM, ResourceManagerCallback(), lambda _: None, lambda *_: None, Errors())
    with pytest.raises(ConnectionLost, match="cannot be read"):
        made.open(lambda _: call, registration(), 1.0)


def test_a_thread_that_cannot_be_started_leaves_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: object) -> None:
        raise RuntimeError("can't start new thread")

    call = Call([], lambda: None)
    made = Conversation(RM, ResourceManagerCallback(), lambda _: None, lambda *_: None, Errors())
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="new thread"):
        made.open(lambda _: call, registration(), PATIENCE_S)
    assert call.is_cancelled.is_set()


class Unshowable(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("cannot be shown")


class Awkward(ResourceManagerCallback):
    """Answers what nobody can understand, or raises what nobody can show."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.accepted: list[str] = []
        self.was_asked = threading.Event()

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.accepted.extend(it.application_id for it in response.accepted)

    def _answered(self) -> Any:
        self.was_asked.set()
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    def predicates(self, args: si.PredicatesArgs) -> str | None:  # noqa: ARG002
        return self._answered()  # type: ignore[no-any-return]

    def get_state_dump(self) -> str:
        return self._answered()  # type: ignore[no-any-return]


@pytest.mark.parametrize("answer", [5, True, "half \ud800", Unshowable(), b"bytes"])
def test_an_answer_of_a_wrong_type_is_the_programs_own_affair(
    serve: Callable[..., Serving], answer: object
) -> None:
    """The same program in one process goes on as well, and is told the remedy."""
    raised: list[CallbackRaised] = []
    callback = Awkward(answer)
    serving = serve(quick_core())
    address = serving.parts["grpc"].address
    with RemoteCore(address, on_callback_error=raised.append) as core:
        core.register_resource_manager(registration(), callback)
        core.update_node(node(RM))
        core.update_application(application(RM, "app"))
        core.update_allocation(asks(RM, "ask"))
        assert callback.was_asked.wait(PATIENCE_S)
        core.update_application(application(RM, "app-2"))
        wait_until(lambda: "app-2" in callback.accepted)
        assert core.failure is None
        is_text = isinstance(answer, str)
        wait_until(lambda: is_text or bool(raised))
        assert is_text is not any(it.method == "predicates" for it in raised)
        dump = core.state_dump()
    assert RM in str(dump)


def test_a_stream_of_events_whose_thread_cannot_be_started_is_closed(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = serve(quick_core())
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "yunikorn-actors-events":
            raise RuntimeError("can't start new thread")
        start(thread)

    with RemoteCore(serving.parts["grpc"].address) as core:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            core.open_feed(Feed(10), 0)
        assert not core._feeds
        wait_until(lambda: not serving.core._feeds)


def test_a_call_on_a_connection_that_was_closed_meanwhile_says_so(
    serve: Callable[..., Serving],
) -> None:
    """The one that makes the connection again closes the former one, which a call may hold."""
    with RemoteCore(serve(quick_core()).parts["grpc"].address) as core:
        assert core._link is not None
        core._link.close()
        with pytest.raises(ConnectionLost, match="was closed meanwhile"):
            core.events()
        with pytest.raises(ConnectionLost, match="was closed meanwhile"):
            core.state_dump()
        with pytest.raises(ConnectionLost, match="was closed meanwhile"):
            core.register_resource_manager(registration(), ResourceManagerCallback())
