"""The service `si.v1.Scheduler`: the scheduler interface, for clients of either generation."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import grpc

from yunikorn_actors import si
from yunikorn_actors.service.rpc.admission import OpenCall
from yunikorn_actors.service.rpc.handlers import (
    answering,
    check_same,
    converse,
    decoded,
    read,
    talking,
)
from yunikorn_actors.service.rpc.managers import Manager, Managers
from yunikorn_actors.service.rpc.messages import Kind
from yunikorn_actors.service.rpc.outgoing import Item
from yunikorn_actors.service.rpc.protobuf import UnknownFields
from yunikorn_actors.service.served import ServedCore

NAME: Final = "si.v1.Scheduler"


class Update(NamedTuple):
    """One kind of request, and the call that takes it."""

    kind: Kind
    request: type[Any]
    take: Callable[[ServedCore, Any], None]
    may_block: bool = False
    """Whether the core may have to ask others, such as a directory of users."""


UPDATES: Final = {
    "UpdateAllocation": Update(
        Kind.ALLOCATIONS, si.AllocationRequest, lambda core, it: core.update_allocation(it)
    ),
    "UpdateApplication": Update(
        Kind.APPLICATIONS,
        si.ApplicationRequest,
        lambda core, it: core.update_application(it),
        may_block=True,
    ),
    "UpdateNode": Update(Kind.NODES, si.NodeRequest, lambda core, it: core.update_node(it)),
}


async def take(managers: Managers, manager: Manager, update: Update, request: Any) -> None:  # noqa: ANN401
    """Hand a request to the core when there is room for it."""
    check_same(manager, request.rm_id)
    call = partial(update.take, managers.core, request)
    await managers.say(manager, call, may_block=update.may_block)


def methods(managers: Managers, unknown_fields: UnknownFields) -> grpc.GenericRpcHandler:
    intake = managers.intake

    async def register(data: bytes) -> bytes:
        kind = si.RegisterResourceManagerRequest
        await managers.register(await decoded(managers, data, kind, unknown_fields))
        return b""

    async def stream(update: Update, call: OpenCall) -> None:
        request = await read(managers, call, update.request, unknown_fields)
        if request is None:
            return
        manager = managers.find(request.rm_id)

        async def receive() -> None:
            received: Any = request
            while received is not None:
                await take(managers, manager, update, received)
                received = await read(managers, call, update.request, unknown_fields)

        async def send(item: Item) -> None:
            await call.write(item.data)

        await converse(managers, manager, (update.kind,), receive, send)

    return grpc.method_handlers_generic_handler(
        NAME,
        {
            "RegisterResourceManager": answering(intake, register),
            **{name: talking(intake, partial(stream, update)) for name, update in UPDATES.items()},
        },
    )
