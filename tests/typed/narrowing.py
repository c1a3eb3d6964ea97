"""What a type checker knows of a program; `.ci/types` has mypy and pyright read it, nobody runs it."""

from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Literal, assert_never, assert_type

from yunikorn_actors import (
    AllocationSaid,
    Application,
    ApplicationChanged,
    ApplicationSaid,
    ApplicationWantedBack,
    AsyncApplication,
    AsyncEvent,
    AsyncLease,
    AsyncScheduler,
    AsyncSchedulerCore,
    Cause,
    ConnectionChanged,
    Event,
    EventsFound,
    EventsSaid,
    EventStream,
    Lease,
    LeaseOver,
    Node,
    NodeChanged,
    NodeSaid,
    NotPlaced,
    Placed,
    Response,
    Responses,
    Scheduler,
    SchedulerCore,
    WaitingSum,
    WantedBack,
    Why,
    si,
)


async def responses(handle: Responses) -> None:
    assert_type(handle.nodes(), AsyncIterator[si.NodeResponse])
    async for response in handle.responses():
        assert_type(response, AllocationSaid | ApplicationSaid | NodeSaid | EventsSaid)
        by_kind(response)
        by_class(response)


def by_kind(response: Response) -> None:
    """The kind of a response narrows its value."""
    assert_type(response.kind, Literal["allocation", "application", "node", "events"])
    if response.kind == "allocation":
        assert_type(response.value, si.AllocationResponse)
    elif response.kind == "application":
        assert_type(response.value, si.ApplicationResponse)
    elif response.kind == "node":
        assert_type(response.value, si.NodeResponse)
    else:
        assert_type(response.kind, Literal["events"])
        assert_type(response.value, tuple[si.EventRecord, ...])


def by_class(response: Response) -> si.SiMessage | None:
    """A `match` over the classes is known to be complete."""
    match response:
        case AllocationSaid(value=said):
            return said
        case ApplicationSaid(value=said):
            return said
        case NodeSaid(value=said):
            return said
        case EventsSaid():
            return None
        case _:
            assert_never(response)


def events(event: Event) -> str:
    if event.kind == "placed":
        assert_type(event, Placed[Lease])
        return event.lease.node_id
    if event.kind == "not_placed":
        assert_type(event, NotPlaced)
        return str(event.error)
    if event.kind == "wanted_back" or event.kind == "lease_over":  # noqa: PLR1714 - narrows
        assert_type(event, WantedBack[Lease] | LeaseOver[Lease])
        return event.lease.key
    if event.kind == "application_wanted_back":
        assert_type(event, ApplicationWantedBack[Lease])
        return event.leases[0].key
    if event.kind == "application":
        assert_type(event, ApplicationChanged)
        return event.application
    if event.kind == "connection":
        assert_type(event, ConnectionChanged)
        return event.connection.state
    assert_type(event, NodeChanged)
    return event.node_id


def events_by_class(event: Event) -> str:
    match event:
        case Placed(lease=lease) | WantedBack(lease=lease) | LeaseOver(lease=lease):
            return lease.key
        case NotPlaced(key=key):
            return key
        case ApplicationChanged(application=name) | ApplicationWantedBack(application=name):
            return name
        case NodeChanged(node_id=name):
            return name
        case ConnectionChanged(connection=connection):
            return connection.reason
        case _:
            assert_never(event)


def front(scheduler: Scheduler) -> None:
    with scheduler.events("placed", "node") as heard:
        for event in heard:
            assert_type(event, Event)
            events(event)
            events_by_class(event)
    app = scheduler.application("a", user="ann", gang={"w": {"count": 2, "priority": 3}})
    assert_type(scheduler.applications["a"], Application)
    assert_type(scheduler.nodes["n"], Node[Lease])
    assert_type(scheduler.nodes["n"].idle_since, float | None)
    assert_type(scheduler.waiting(), tuple[WaitingSum, ...])
    assert_type(app.ask("t", vcore=1, deadline="10m"), Future[Lease])
    assert_type(app.ask("u", vcore=1, count=2, deadline=5), list[Future[Lease]])
    assert_type(app.explain("t").cause, Cause | None)


async def front_on_a_loop(scheduler: AsyncScheduler) -> None:
    async with scheduler.events() as heard:
        async for event in heard:
            assert_type(event, AsyncEvent)
            if event.kind == "placed":
                assert_type(event.lease, AsyncLease)
    assert_type(scheduler.applications["a"], AsyncApplication)
    assert_type(scheduler.nodes["n"].leases, list[AsyncLease])
    assert_type(await scheduler.waiting(), tuple[WaitingSum, ...])
    assert_type(await scheduler.applications["a"].ask("t", vcore=1, deadline=5), AsyncLease)


def questions(core: SchedulerCore) -> None:
    why = core.explain("app-1", "task-1")
    assert_type(why, Why)
    assert_type(why.obstacle.cause, Cause)
    assert_type(core.events(), EventsFound)
    assert_type(core.event_stream(), EventStream)


async def awaited(core: AsyncSchedulerCore) -> None:
    assert_type(await core.explain("app-1", "task-1"), Why)
    async with core as started, await started.event_stream() as stream:
        async for record in stream:
            assert_type(record, si.EventRecord)
