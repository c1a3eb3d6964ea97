"""Records of events that leave the service over gRPC hold no secret, as those of REST do not."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

pytest.importorskip("grpc")
from calling import EXTENSION, Caller, application, read
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.messages.callbacks import call_back
from yunikorn_actors.messages.rm_calls import CallSendEvent
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.service import Serving

RM = "rm-1"
SECRET = "hunter2"  # noqa: S105 - it is to be found nowhere


def test_texts_of_events_are_masked(serve: Callable[..., Serving]) -> None:
    """The event of a refusal cites the queue that was asked for."""
    with Caller(serve().parts["grpc"].address) as caller:
        caller.register(RM)
        request = application(RM)
        new = tuple(replace(it, queue_name=f"root.none.token={SECRET}") for it in request.new)
        caller.applications().say(replace(request, new=new)).hear(si.ApplicationResponse)
        asked = m.EventsRequest(first_id=0, count=1000)
        found = read(m.EventsFound, caller.call(f"{EXTENSION}/Events", asked))
    told = [it.message for it in found.records if "token=" in it.message]
    assert told, "vacuous"
    assert SECRET not in str(told)


@dataclass
class Hearing(si.ResourceManagerCallback):
    heard: list[si.EventRecord] = field(default_factory=list)

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.heard += events


def test_what_is_pushed_to_a_resource_manager_is_masked_and_ids_stay() -> None:
    secret = si.EventRecord(object_id="token=hunter2", message="no user 'password=hunter2'")
    plain = si.EventRecord(object_id="n1", message="the node was added")
    hearing = Hearing()
    assert call_back(hearing, CallSendEvent(events=(secret, plain))).error is None
    assert [it.message for it in hearing.heard] == ["no user 'password=***'", plain.message]
    assert [it.object_id for it in hearing.heard] == ["token=hunter2", "n1"]
