"""Calls by gRPC as a client of another language makes them, and what each has to be answered.

Messages are written and read by protobuf itself, from their JSON, and not by the code of this
package. Which status a call has to have is worked out from what was called before: who is
registered, which streams are open, which token is shown.
"""

import json
import queue
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import grpc
from google.protobuf import json_format, message_factory

from yunikorn_actors.drivers.live.clock import StandingClock
from yunikorn_actors.drivers.simulator.simulator import EPOCH_NS
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.front_walk import QUEUES
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.service.access_policy import Access
from yunikorn_actors.service.rpc.protobuf import pool
from yunikorn_actors.service.service import Serving

_SI: Final = "/si.v1.Scheduler/"
_OURS: Final = "/yunikorn_actors.v1.Extension/"
_FULL, _READ = "full-of-the-laboratory", "read-of-the-laboratory"
_CALLS: Final = (12, 25)
_PATIENCE_S: Final = 20.0
_POLL_S: Final = 0.0005
_MANAGERS: Final = ("rm-1", "rm-2")
_KINDS: Final = ("Allocation", "Application", "Node")
_READING: Final = ("Explain", "Expected", "Events", "StateDump")
_END: Final = object()
Fault = tuple[str, Any, list[str]]


def _message(name: str, plain: dict[str, Any]) -> bytes:
    kind = message_factory.GetMessageClass(pool().FindMessageTypeByName(name))
    return json_format.ParseDict(plain, kind()).SerializeToString()


def _plain(name: str, data: bytes) -> dict[str, Any]:
    kind = message_factory.GetMessageClass(pool().FindMessageTypeByName(name))
    found: dict[str, Any] = json_format.MessageToDict(kind.FromString(data))
    return found


class _Stream:
    """A stream of one kind of update, as a resource manager keeps it open."""

    def __init__(self, channel: Any, kind: str, rm_id: str) -> None:  # noqa: ANN401 - of grpc
        self.kind, self.rm_id = kind, rm_id
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = channel.stream_stream(f"{_SI}Update{kind}")(
            iter(self._said.get, _END), metadata=_bearer(_FULL), timeout=_PATIENCE_S
        )

    def say(self, plain: dict[str, Any]) -> None:
        self._said.put(_message(f"si.v1.{self.kind}Request", plain))

    def next(self) -> dict[str, Any]:
        """Return the next answer; wait for it."""
        return _plain(f"si.v1.{self.kind}Response", next(self._call))

    def end(self) -> str:
        """Return with which status it has ended; what it was answered before is passed over."""
        try:
            for _ in self._call:
                pass
        except grpc.RpcError:
            pass
        self._said.put(_END)
        return str(self._call.code().name)

    def close(self) -> None:
        """Say nothing more; wait until the service has noticed."""
        self._said.put(_END)
        self._call.cancel()


def _bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),) if token else ()


class _Ask(NamedTuple):
    key: str
    vcore: int


def walk_rpc(draw: Draw) -> Iterator[Fault]:
    """Yield what is called, what is answered, and what is wrong with that."""
    core = SchedulerCore(driver="direct", instance="rpc", clock=StandingClock(EPOCH_NS))
    access = Access(token=_FULL, read_token=_READ)
    serving = Serving(core, {"grpc": "127.0.0.1:0"}, access=access).start()
    options = (("grpc.use_local_subchannel_pool", 1),)
    channel = grpc.insecure_channel(serving.parts["grpc"].address, options)
    client = _Client(draw, core, channel)
    try:
        yield from client.begin()
        for _ in range(draw.whole(*_CALLS)):
            yield from client.call()
        client.close()
    finally:
        channel.close()
        serving.stop()


class _Client:
    def __init__(self, draw: Draw, core: SchedulerCore, channel: Any) -> None:  # noqa: ANN401
        self._draw, self._core, self._channel = draw, core, channel
        self._registered: set[str] = set()
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._names = Counter[str]()

    def begin(self) -> Iterator[Fault]:
        yield from self._register("rm-1")
        yield from self._work()

    def call(self) -> Iterator[Fault]:
        draw = self._draw
        calls = (
            self._work, self._work, self._rights, self._rights, self._wrong, self._wrong,
            self._register_some, self._opened_again, self._alien, self._unknown, self._events,
            self._dump, self._stream_of_events, self._explain, self._unregister, self._left,
        )  # fmt: skip
        yield from draw.one_of(calls)()

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()

    # -- single calls

    def _unary(self, method: str, data: bytes, token: str = _FULL) -> tuple[str, bytes]:
        """Return the name of the status, and the answer or the reason."""
        call = self._channel.unary_unary(method)
        try:
            return "OK", call(data, metadata=_bearer(token), timeout=_PATIENCE_S)
        except grpc.RpcError as error:
            found: Any = error
            return str(found.code().name), str(found.details()).encode()

    def _judged(
        self, said: str, method: str, data: bytes, wanted: str, token: str = _FULL
    ) -> tuple[bytes, Fault]:
        status, answer = self._unary(method, data, token)
        faults = [] if status == wanted else [f"{said}: {status} and not {wanted}, {answer!r:.200}"]
        return answer, (said, (status, answer.decode(errors="replace")), faults)

    def _registration(self, rm_id: str, config: str = QUEUES) -> bytes:
        plain = {"rmID": rm_id, "version": "1", "policyGroup": rm_id, "config": config}
        return _message("si.v1.RegisterResourceManagerRequest", plain)

    def _register_some(self) -> Iterator[Fault]:
        yield from self._register(self._draw.one_of(_MANAGERS))

    def _register(self, rm_id: str) -> Iterator[Fault]:
        """Register; the streams of a former registration end."""
        method = f"{_SI}RegisterResourceManager"
        _, fault = self._judged(f"register {rm_id}", method, self._registration(rm_id), "OK")
        yield fault
        yield from self._ended(rm_id, "ABORTED")
        self._registered.add(rm_id)

    def _ended(self, rm_id: str, wanted: str) -> Iterator[Fault]:
        for name in [it for it in self._streams if it[0] == rm_id]:
            status = self._streams.pop(name).end()
            faults = [] if status == wanted else [f"stream {name} ends with {status}, not {wanted}"]
            yield f"stream {name} ends", status, faults

    def _wrong(self) -> Iterator[Fault]:
        """Messages that are none, and requests that cannot be."""
        what, method, data, wanted = self._draw.one_of(
            (
                ("garbage", f"{_OURS}Explain", b"\xff\xff\xff", "INVALID_ARGUMENT"),
                ("no name", f"{_SI}RegisterResourceManager", self._registration(""),
                 "INVALID_ARGUMENT"),
                ("no queues", f"{_SI}RegisterResourceManager",
                 self._registration("rm-3", "partitions: 3"), "INVALID_ARGUMENT"),
                ("no such method", f"{_OURS}Nothing", b"", "UNIMPLEMENTED"),
                ("a group", f"{_OURS}Explain", b"\x0b" * 70_000, "INVALID_ARGUMENT"),
                ("a negative count", f"{_OURS}Events",
                 _message("yunikorn_actors.v1.EventsRequest", {"firstID": -1}), "INVALID_ARGUMENT"),
                ("nobody's configuration", f"{_OURS}UpdateConfiguration",
                 _message("si.v1.UpdateConfigurationRequest",
                          {"rmID": "rm-9", "config": QUEUES}), "FAILED_PRECONDITION"),
                ("no configuration", f"{_OURS}UpdateConfiguration",
                 _message("si.v1.UpdateConfigurationRequest", {"config": "partitions: 3"}),
                 "INVALID_ARGUMENT"),
            )
        )  # fmt: skip
        yield self._judged(what, method, data, wanted)[1]

    def _rights(self) -> Iterator[Fault]:
        """Without a token nobody is let in, and with that for reading nothing is changed."""
        token = self._draw.one_of(("", "another", _READ, _FULL))
        if self._draw.once_in(2):
            name = self._draw.one_of(_READING[:3])
            method, data, needs_full = f"{_OURS}{name}", b"", False
            usual = "NOT_FOUND" if name == "Explain" else "OK"
            kind = "yunikorn_actors.v1.Question"
            data = _message(kind, {"applicationID": "nobody", "allocationKey": "k"})
            if name == "Events":
                data = b""
            elif name == "Expected":
                data = _message(kind, {})
        else:
            method, needs_full, usual = f"{_OURS}Unregister", True, "OK"
            data = _message("yunikorn_actors.v1.ResourceManager", {"rmID": "rm-9"})
        wanted = usual
        if token in {"", "another"}:
            wanted = "UNAUTHENTICATED"
        elif token == _READ and needs_full:
            wanted = "PERMISSION_DENIED"
        yield self._judged(f"{method} with {token!r}", method, data, wanted, token)[1]

    def _explain(self) -> Iterator[Fault]:
        """A question that names no ask is about all that wait."""
        data = _message("yunikorn_actors.v1.Question", {})
        answer, fault = self._judged("what waits", f"{_OURS}Explain", data, "OK")
        if not fault[2]:
            found = json.loads(_plain("yunikorn_actors.v1.Explanation", answer)["json"])
            wanted = json.loads(json.dumps([len(self._core.waiting())]))
            if [len(found)] != wanted:
                fault[2].append(f"{len(found)} sums of what waits, and not {wanted[0]}")
        yield fault

    def _events(self) -> Iterator[Fault]:
        first, count = self._draw.whole(0, 8), self._draw.whole(0, 6)
        plain = {"firstID": first, "count": count}
        data = _message("yunikorn_actors.v1.EventsRequest", plain)
        answer, fault = self._judged("events", f"{_OURS}Events", data, "OK")
        truth = self._core.events(first, count or 10_000)
        if not fault[2]:
            found = _plain("yunikorn_actors.v1.EventsFound", answer)
            told = [it.get("objectID", "") for it in found.get("records", ())]
            wanted = [it.object_id for it in truth.records]
            ends = int(found.get("lowestID", 0)), int(found.get("highestID", 0))
            if (told, *ends) != (wanted, truth.lowest_id, truth.highest_id):
                fault[2].append(f"events {told} of {ends}, there are {wanted} of {truth!r:.0}")
        yield fault

    def _dump(self) -> Iterator[Fault]:
        call = self._channel.unary_stream(f"{_OURS}StateDump")
        pieces = [*call(b"", metadata=_bearer(_READ), timeout=_PATIENCE_S)]
        parts = (_plain("yunikorn_actors.v1.Piece", it)["json"] for it in pieces)
        dump = json.loads(b"".join(map(b64decode, parts)))
        truth = json.loads(json.dumps(self._core.state_dump()))
        faults = []
        if dump["partitions"] != truth["partitions"]:
            faults.append("the dump is not what the core has")
        yield "a dump", len(pieces), faults

    def _stream_of_events(self) -> Iterator[Fault]:
        history = self._draw.whole(0, 5)
        data = _message("yunikorn_actors.v1.EventStreamRequest", {"history": history})
        call = self._channel.unary_stream(f"{_OURS}EventStream")(
            data, metadata=_bearer(_READ), timeout=_PATIENCE_S
        )
        found = self._core.events(0, 10_000).records
        wanted = [it.object_id for it in found[max(0, len(found) - history) :]]
        opening, told = next(call), list[str]()
        while len(told) < len(wanted):
            records = _plain("yunikorn_actors.v1.Records", next(call))
            told += [it.get("objectID", "") for it in records.get("records", ())]
        call.cancel()
        faults = [] if told == wanted else [f"a stream begins with {told}, and not with {wanted}"]
        if opening:
            faults.append(f"a stream begins with {opening!r}")
        yield f"a stream from {history} before", told, faults

    # -- streams of a resource manager

    def _stream(self, kind: str, rm_id: str, first: dict[str, Any]) -> _Stream:
        """Say something on the stream that is open, or on another that begins with it."""
        stream = self._streams.get((rm_id, kind))
        if stream is None:
            stream = self._streams[rm_id, kind] = _Stream(self._channel, kind, rm_id)
        stream.say(first)
        return stream

    def _name(self, kind: str) -> str:
        self._names[kind] += 1
        return f"{kind}-{self._names[kind]}"

    def _work(self) -> Iterator[Fault]:
        """Bring a node, an application and asks: each is accepted, and what fits is placed."""
        rm_id = self._draw.one_of(sorted(self._registered) or ["rm-1"])
        if rm_id not in self._registered:
            yield from self._register(rm_id)
        node, app = self._name("node"), self._name("app")
        asks = [_Ask(self._name("k"), self._draw.whole(1, 3)) for _ in range(2)]
        size = {"resources": {"vcore": {"value": "4000"}}}
        info = {"nodeID": node, "action": "CREATE", "schedulableResource": size}
        nodes = self._stream("Node", rm_id, {"nodes": [info], "rmID": rm_id})
        yield from _accepted(nodes, node, "nodeID")
        new = {
            "applicationID": app, "queueName": "root.batch", "partitionName": "default",
            "ugi": {"user": app},
        }  # fmt: skip
        apps = self._stream("Application", rm_id, {"new": [new], "rmID": rm_id})
        yield from _accepted(apps, app, "applicationID")
        plain = [
            {
                "allocationKey": key, "applicationID": app, "partitionName": "default",
                "resourceAsk": {"resources": {"vcore": {"value": str(vcore * 1000)}}},
                "maxAllocations": 1,
            }
            for key, vcore in asks
        ]  # fmt: skip
        refused = self._draw.one_of(("nobody", "closed-to-it"))
        plain.append({**plain[0], "allocationKey": "refused", "applicationID": refused})
        updates = self._stream("Allocation", rm_id, {"asks": plain, "rmID": rm_id})
        yield from self._placed(updates, app)

    def _placed(self, stream: _Stream, app: str) -> Iterator[Fault]:
        """What is refused is answered; from then on all that the core places is."""
        rejected, placed = list[str](), dict[str, str]()
        wanted: dict[str, str] | None = None
        while wanted is None or len(placed) < len(wanted):
            response = stream.next()
            rejected += [it["allocationKey"] for it in response.get("rejected", ())]
            placed |= {
                it["allocationKey"]: it["nodeID"]
                for it in response.get("new", ())
                if it["applicationID"] == app
            }
            if wanted is None and rejected:
                wanted = self._truth(stream.rm_id, app)
        faults = [] if placed == wanted else [f"{app} is placed so: {placed}, there is {wanted}"]
        if rejected != ["refused"]:
            faults.append(f"{rejected} is rejected")
        yield f"{app} asks", (placed, rejected), faults

    def _truth(self, rm_id: str, app: str) -> dict[str, str]:
        """Wait until the core has decided; return where the work of an application is."""
        while not self._core.is_settled():
            time.sleep(_POLL_S)
        partitions = self._core.state_dump()["partitions"]
        found = partitions[f"[{rm_id}]default"]["applications"].get(app, {"allocations": ()})
        return {it["key"]: it["node"] for it in found["allocations"]}

    def _opened_again(self) -> Iterator[Fault]:
        """Of two streams of one kind the former ends."""
        if not self._streams:
            return
        rm_id, kind = self._draw.one_of([*self._streams])
        former = self._streams.pop((rm_id, kind))
        self._stream(kind, rm_id, {"rmID": rm_id})
        status = former.end()
        faults = [] if status == "ABORTED" else [f"a stream opened again ends with {status}"]
        yield f"{kind} of {rm_id} again", status, faults

    def _alien(self) -> Iterator[Fault]:
        """A stream belongs to one resource manager."""
        if not self._streams:
            return
        rm_id, kind = self._draw.one_of([*self._streams])
        stream = self._streams.pop((rm_id, kind))
        stream.say({"rmID": "rm-9"})
        status = stream.end()
        faults = [] if status == "INVALID_ARGUMENT" else [f"another's request: {status}"]
        yield f"{kind} of {rm_id} for another", status, faults
        if not any(name == rm_id for name, _ in self._streams):
            # That was its last stream, so it is lost.
            self._registered.discard(rm_id)

    def _unknown(self) -> Iterator[Fault]:
        kind = self._draw.one_of(_KINDS)
        stream = _Stream(self._channel, kind, "rm-9")
        stream.say({"rmID": "rm-9"})
        status = stream.end()
        faults = [] if status == "FAILED_PRECONDITION" else [f"nobody's stream: {status}"]
        yield f"{kind} of nobody", status, faults

    def _unregister(self) -> Iterator[Fault]:
        """Its streams end as they should, and all of it goes."""
        rm_id = self._draw.one_of(_MANAGERS)
        wanted = "OK" if rm_id in self._registered else None
        data = _message("yunikorn_actors.v1.ResourceManager", {"rmID": rm_id})
        status, answer = self._unary(f"{_OURS}Unregister", data)
        faults = (
            [f"unregister {rm_id}: {status}, {answer!r}"] if wanted and status != wanted else []
        )
        yield f"unregister {rm_id}", status, faults
        yield from self._ended(rm_id, "OK")
        self._registered.discard(rm_id)
        left = [it for it in self._core.state_dump()["partitions"] if it.startswith(f"[{rm_id}]")]
        yield "what is left", left, [f"{left} is left"] if left else []

    def _left(self) -> Iterator[Fault]:
        """A stream that its client has left is no loss while there is another."""
        if len(self._streams) < 2:  # noqa: PLR2004 - another one beside it
            return
        name = self._draw.one_of([*self._streams])
        if not any(it != name and it[0] == name[0] for it in self._streams):
            return
        self._streams.pop(name).close()
        yield f"{name} is left", "", []


def _accepted(stream: _Stream, wanted: str, word: str) -> Iterator[Fault]:
    """Wait for the answer to it; what others led to may come before."""
    while True:
        response = stream.next()
        if rejected := response.get("rejected"):
            yield f"{wanted} is refused", rejected, [f"{wanted} is refused: {rejected}"]
            return
        if any(it[word] == wanted for it in response.get("accepted", ())):
            yield f"{wanted} is accepted", "", []
            return
