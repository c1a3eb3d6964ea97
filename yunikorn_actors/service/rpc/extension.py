"""The service `yunikorn_actors.v1.Extension`: what the interface has only within one process."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from operator import call
from typing import Final, TypeVar

import grpc
import msgspec
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import NoReply, Refused
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.runtime.event_streams import ROOM, Feed
from yunikorn_actors.runtime.ordered_calls import opened
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.rpc.admission import OpenCall
from yunikorn_actors.service.rpc.handlers import (
    answering,
    answering_whom,
    converse,
    decoded,
    read,
    talking,
    telling,
)
from yunikorn_actors.service.rpc.managers import Manager, Managers
from yunikorn_actors.service.rpc.messages import Kind
from yunikorn_actors.service.rpc.outgoing import Item
from yunikorn_actors.service.rpc.protobuf import (
    UnknownFields,
    codec,
    embedded,
    field_numbers,
    varint,
)
from yunikorn_actors.service.rpc.si_service import UPDATES, take
from yunikorn_actors.si import InvalidRequest
from yunikorn_actors.si.form import check_counts
from yunikorn_actors.si.wire import SiMessage

NAME: Final = "yunikorn_actors.v1.Extension"
PIECE: Final = 1024 * 1024
"""Bytes of a state dump in one message."""
DUMPS_MAX: Final = 2
READ_S: Final = 20.0
"""How long the reader of a state dump may take for a piece of it."""
EVENTS_MOST: Final = 10_000
M = TypeVar("M", bound=SiMessage)
Write = Callable[[bytes], Awaitable[None]]

_FIELDS: Final = {
    Kind.ALLOCATIONS: "allocations",
    Kind.APPLICATIONS: "applications",
    Kind.NODES: "nodes",
    Kind.PREDICATES: "predicates",
    Kind.PREEMPTION_PREDICATES: "preemptionPredicates",
    Kind.CONTAINER_STATES: "containerState",
    Kind.EVENTS: "events",
    Kind.STATE: "state",
}
"""Where each kind stands in Told."""


def encoded(item: Item) -> bytes:
    numbers = field_numbers(m.Told)
    number = varint(numbers["number"] << 3) + varint(item.place) if item.is_question else b""
    # By hand: the answer is encoded already, and is put into its frame as it is.
    beside = b"".join(embedded(numbers[field], data) for field, data in item.beside)
    return number + embedded(numbers[_FIELDS[item.kind]], item.data) + beside


class _Lines(msgspec.Struct):
    lines: tuple[str, ...]


class Extension:
    def __init__(
        self, managers: Managers, unknown_fields: UnknownFields, standing: Standing
    ) -> None:
        self._managers = managers
        self._standing = standing
        self._unknown_fields = unknown_fields
        self._dumping = asyncio.Semaphore(DUMPS_MAX)

    def methods(self) -> grpc.GenericRpcHandler:
        intake = self._managers.intake
        return grpc.method_handlers_generic_handler(
            NAME,
            {
                "Converse": talking(intake, self._converse),
                "Unregister": answering(intake, self._unregister),
                "UpdateConfiguration": answering_whom(intake, self._update_configuration),
                "Explain": answering(intake, self._explain),
                "Expected": answering(intake, self._expected),
                "Simulate": answering(intake, self._simulate),
                "StateDump": telling(intake, self._state_dump),
                "Events": answering(intake, self._events),
                "EventStream": telling(intake, self._event_stream),
            },
        )

    async def _decode(self, kind: type[M], data: bytes) -> M:
        self._managers.check()
        return await decoded(self._managers, data, kind, self._unknown_fields)

    # -- the conversation

    async def _converse(self, call: OpenCall) -> None:
        said = await self._read(call)
        if said is None:
            return
        if said.opening is None:
            raise InvalidRequest("Said.opening: must come first: it says whose conversation it is")
        manager = await self._open(said.opening)
        registered = m.Told(registered=si.RegisterResourceManagerResponse())
        await call.write(codec(m.Told).encode(registered))

        async def receive() -> None:
            while (said := await self._read(call)) is not None:
                await self._take(manager, said)

        async def send(item: Item) -> None:
            await call.write(encoded(item))

        await converse(self._managers, manager, said.opening.hears, receive, send)

    async def _read(self, call: OpenCall) -> m.Said | None:
        return await read(self._managers, call, m.Said, self._unknown_fields)

    async def _open(self, opening: m.Opening) -> Manager:
        if opening.registration is None:
            return self._managers.find(opening.rm_id)
        registration = opening.registration
        # The administrator's configuration comes before a default of the client's.
        if opening.config_is_default and self._managers.core.is_administered:
            registration = replace(registration, config="")
        return await self._managers.register(registration, opening.hears)

    async def _take(self, manager: Manager, said: m.Said) -> None:
        if said.answer is not None:
            # Answers must not wait behind requests, for which the core may have no room.
            manager.outlet.answered(said.answer)
            return
        requests = {
            "UpdateAllocation": said.allocations,
            "UpdateApplication": said.applications,
            "UpdateNode": said.nodes,
        }
        for name, request in requests.items():
            if request is not None:
                await take(self._managers, manager, UPDATES[name], request)
                return
        raise InvalidRequest("Said: must have a request or an answer; the opening comes once")

    # -- calls

    async def _unregister(self, data: bytes) -> bytes:
        await self._managers.unregister((await self._decode(m.ResourceManager, data)).rm_id)
        return b""

    async def _update_configuration(self, data: bytes, peer: str) -> bytes:
        request = await self._decode(si.UpdateConfigurationRequest, data)
        core = self._managers.core
        si.check_form(request, si.UpdateConfigurationRequest)
        if request.rm_id:
            await self._managers.call(partial(core.update_configuration, request))
        else:
            await self._managers.call(partial(core.administer, request.config, f"gRPC at {peer}"))
        return b""

    async def _explain(self, data: bytes) -> bytes:
        asked = await self._decode(m.Question, data)
        if not asked.application_id and not asked.allocation_key:
            return await self._waiting(asked.partition)
        why = await self._managers.call(
            partial(
                self._managers.core.explain,
                asked.application_id,
                asked.allocation_key,
                partition=asked.partition,
            )
        )
        written = msgspec.json.encode(why).decode()
        return codec(m.Explanation).encode(m.Explanation(text=str(why), json=written))

    async def _waiting(self, partition: str) -> bytes:
        """A question that names no ask is about all that wait."""
        core = self._managers.core
        sums = await self._managers.call(lambda: core.waiting(partition=partition))
        written = msgspec.json.encode(sums).decode()
        return codec(m.Explanation).encode(m.Explanation(json=written))

    async def _expected(self, data: bytes) -> bytes:
        asked = await self._decode(m.Question, data)
        expected = partial(
            self._managers.core.expected, asked.application_id, partition=asked.partition
        )
        found = await self._managers.call(expected)
        return codec(m.Explanation).encode(m.Explanation(json=msgspec.json.encode(found).decode()))

    async def _simulate(self, data: bytes) -> bytes:
        asked = await self._decode(m.Simulation, data)
        simulate = self._standing.simulate
        if simulate is None:
            raise Refused("simulate: this service has no read side, which answers it: serve REST")
        # On threads of its own: a simulation takes minutes and must not hold up other calls.
        found = await self._managers.call_aside(partial(simulate, asked.json.encode()))
        lines = msgspec.json.decode(found, type=_Lines).lines
        written = m.Explanation(text="\n".join(lines), json=found.decode())
        return codec(m.Explanation).encode(written)

    async def _events(self, data: bytes) -> bytes:
        asked = await self._decode(m.EventsRequest, data)
        count = asked.count or EVENTS_MOST
        events = partial(self._managers.core.events, asked.first_id, count)
        found = await self._managers.call(events)
        return await self._managers.call(partial(encoded_events, found))

    async def _state_dump(self, data: bytes, write: Write) -> None:
        await self._decode(m.StateDumpRequest, data)
        # All of it is in memory until it has been read, so not many may read it at one time.
        async with self._dumping:
            dump = await self._managers.call(
                lambda: json.dumps(self._managers.core.state_dump(), separators=(",", ":")).encode()
            )
            for start in range(0, len(dump), PIECE):
                piece = codec(m.Piece).encode(m.Piece(json=dump[start : start + PIECE]))
                await _write_in_time(write, piece)

    async def _event_stream(self, data: bytes, write: Write) -> None:
        asked = await self._decode(m.EventStreamRequest, data)
        check_counts("EventStreamRequest", history=asked.history)
        feed = Feed(max(ROOM, min(asked.history, EVENTS_MOST)))
        news = asyncio.Event()
        feed.on_change = partial(self._managers.on_loop, news.set)
        open_feed = partial(self._managers.core.open_feed, feed, asked.history)
        close = await opened(self._managers.submit(open_feed), call)
        missed = 0
        try:
            # At once: a client that has this knows that nothing is missed from here on.
            await write(b"")
            while True:
                news.clear()
                # Read before the records: they may come, and the end behind them, after this.
                is_over = feed.has_ended
                if records := tuple(iter(feed.take, None)):
                    missed, before = feed.overflow, missed
                    batch = m.Records(records=records, missed=missed - before)
                    await write(codec(m.Records).encode(batch))
                if is_over:
                    return
                await news.wait()
        finally:
            # However it ended: the core counts its readers.
            close()


async def _write_in_time(write: Write, piece: bytes) -> None:
    try:
        await asyncio.wait_for(write(piece), READ_S)
    except TimeoutError:
        # It keeps a place among few, so it may not read as slowly as it likes.
        raise NoReply(f"the reader has taken nothing for {READ_S:g} s") from None


def encoded_events(found: EventsFound) -> bytes:
    answer = m.EventsFound(
        records=found.records, lowest_id=found.lowest_id, highest_id=found.highest_id
    )
    return codec(m.EventsFound).encode(answer)
