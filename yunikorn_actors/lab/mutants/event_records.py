"""Defects of event records: what they tell, and who gets them."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.events import nodes, queues
from yunikorn_actors.machines.events.publisher import EventPublisher, Ring

EVENT_RECORDS = (
    Mutant(
        id="M320",
        kind=Kind.EVENTS,
        source="a condition left out",
        wrong="A stream gets no records while a push waits.",
        where=EventPublisher._publish,
        old="if self._push_is_coming and not self._hearers:",
        new="if self._push_is_coming:",
    ),
    Mutant(
        id="M321",
        kind=Kind.EVENTS,
        source="a step left out",
        wrong="A stream that was closed is called for ever.",
        where=EventPublisher._on_event_stream_left,
        old="    self._hearers.pop(message.hearer, None)\n",
        new="",
    ),
    Mutant(
        id="M322",
        kind=Kind.EVENTS,
        source="a step left out",
        wrong="A ring that grows again tells of records that are gone.",
        where=Ring.resize,
        old="    self._floor = self.lowest_id\n",
        new="",
    ),
    Mutant(
        id="M323",
        kind=Kind.EVENTS,
        source="one field for another",
        wrong="What others use of a node changes without a record.",
        where=nodes.of_resize,
        old="fact.occupied != fact.old_occupied",
        new="fact.capacity != fact.old_capacity",
    ),
    Mutant(
        id="M324",
        kind=Kind.EVENTS,
        source="a step left out",
        wrong="A limit that a configuration does without ends without a record.",
        where=queues._limit_changes,
        old="    gone = [owner for owner in before if owner not in after]\n",
        new="    gone = []\n",
    ),
)
