"""A client on raw bytes: it says and hears whatever a test wants, one call at a time."""

from collections.abc import Iterator
from queue import SimpleQueue
from types import TracebackType
from typing import Self, TypeVar

import grpc

from yunikorn_actors import si
from yunikorn_actors.service.rpc.protobuf import codec
from yunikorn_actors.si.wire import SiMessage

PATIENCE_S = 20.0
SCHEDULER = "/si.v1.Scheduler"
EXTENSION = "/yunikorn_actors.v1.Extension"
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: work
          - name: small
            resources: {max: {vcore: 2}}
"""

M = TypeVar("M", bound=SiMessage)


def written(message: SiMessage | bytes) -> bytes:
    return message if isinstance(message, bytes) else codec(type(message)).encode(message)


def read(kind: type[M], data: bytes) -> M:
    return codec(kind).decode(data, _no_stranger)


def _no_stranger(path: str) -> None:
    raise AssertionError(path)


class Talk:
    """One stream, half a conversation at a time; without a deadline: no machine is too slow."""

    def __init__(self, channel: grpc.Channel, method: str, metadata: list[tuple[str, str]]) -> None:
        self._said: SimpleQueue[bytes | None] = SimpleQueue()
        self._call = channel.stream_stream(method)(iter(self._said.get, None), metadata=metadata)

    def say(self, message: SiMessage | bytes) -> Self:
        self._said.put(written(message))
        return self

    def say_no_more(self) -> None:
        self._said.put(None)

    def hear(self, kind: type[M]) -> M:
        return read(kind, next(self._call))

    def code(self) -> grpc.StatusCode:
        """Wait until it has ended; what comes before is passed over."""
        try:
            for _ in self._call:
                pass
        except grpc.RpcError:
            pass
        return self._call.code()

    def details(self) -> str:
        return str(self._call.details())

    def cancel(self) -> None:
        self._call.cancel()
        self._said.put(None)


class Caller:
    """One connection, used in a `with` block."""

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        # A connection of its own: otherwise those to one address share one.
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.channel = (
            grpc.insecure_channel(address, options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options)
        )
        self.opened: list[Talk] = []

    def call(self, method: str, message: SiMessage | bytes = b"") -> bytes:
        call = self.channel.unary_unary(method)
        answer: bytes = call(written(message), timeout=PATIENCE_S, metadata=self.metadata)
        return answer

    def calls(self, method: str, message: SiMessage | bytes = b"") -> Iterator[bytes]:
        call = self.channel.unary_stream(method)
        return iter(call(written(message), timeout=PATIENCE_S, metadata=self.metadata))

    def refusal(self, method: str, message: SiMessage | bytes = b"") -> tuple[str, str]:
        """Return the code and the text of a call that is refused."""
        try:
            self.call(method, message)
        except grpc.RpcError as error:
            return error.code().name, error.details()
        raise AssertionError(f"{method} was not refused")

    def talk(self, method: str) -> Talk:
        talk = Talk(self.channel, method, self.metadata)
        self.opened.append(talk)
        return talk

    def register(self, rm_id: str, *, config: str = CONFIG, **extra: str) -> None:
        request = si.RegisterResourceManagerRequest(
            rm_id=rm_id,
            policy_group=rm_id,
            config=config,
            extra_config={name.replace("_", "."): value for name, value in extra.items()},
        )
        self.call(f"{SCHEDULER}/RegisterResourceManager", request)

    def allocations(self) -> Talk:
        return self.talk(f"{SCHEDULER}/UpdateAllocation")

    def applications(self) -> Talk:
        return self.talk(f"{SCHEDULER}/UpdateApplication")

    def nodes(self) -> Talk:
        return self.talk(f"{SCHEDULER}/UpdateNode")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for talk in self.opened:
            talk.cancel()
        self.channel.close()


def node(rm_id: str, name: str = "node-1", vcore: int = 100_000) -> si.NodeRequest:
    info = si.NodeInfo(
        node_id=name,
        action=si.ActionFromRM.CREATE,
        schedulable_resource=si.Resource.of({"vcore": vcore}),
    )
    return si.NodeRequest(rm_id=rm_id, nodes=(info,))


def application(rm_id: str, name: str = "app", queue: str = "root.work") -> si.ApplicationRequest:
    new = si.AddApplicationRequest(
        application_id=name, queue_name=queue, ugi=si.UserGroupInformation(user="ann")
    )
    return si.ApplicationRequest(rm_id=rm_id, new=(new,))


def asks(rm_id: str, *keys: str, app: str = "app", vcore: int = 10) -> si.AllocationRequest:
    size = si.Resource.of({"vcore": vcore})
    return si.AllocationRequest(
        rm_id=rm_id,
        asks=tuple(
            si.AllocationAsk(allocation_key=key, application_id=app, resource_ask=size)
            for key in keys
        ),
    )
