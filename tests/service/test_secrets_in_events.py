"""Records of events that leave the service over gRPC hold no secret, as those of REST do not."""

from yunikorn_actors import si
from yunikorn_actors.messages.queries import EventsFound
from yunikorn_actors.service.rpc import messages as m
from yunikorn_actors.service.rpc.extension import encoded_events
from yunikorn_actors.service.rpc.protobuf import codec


def test_texts_of_events_are_masked_and_ids_stay() -> None:
    """The reason of a refusal cites what was written as the name of a user."""
    record = si.EventRecord(
        type=si.EventType.APP,
        object_id="token=hunter2",
        message="invalid username: 'password=hunter2'",
    )
    found = EventsFound(records=(record, record), lowest_id=1, highest_id=2)
    read = codec(m.EventsFound).decode(encoded_events(found), lambda _: None)
    assert [it.message for it in read.records] == ["invalid username: 'password=***'"] * 2
    assert [it.object_id for it in read.records] == ["token=hunter2"] * 2
    assert (read.lowest_id, read.highest_id) == (1, 2)
