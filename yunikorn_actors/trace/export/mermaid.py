"""The recording as a sequence diagram of Mermaid, which issues and pages draw by themselves.

Addresses do not parse as names there, so participants have short names and say who they are.
"""

import re
from collections.abc import Iterator
from typing import Final

from yunikorn_actors.messages.base import Delivery, is_outside
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.trace.export.timeline import Limit, Timeline
from yunikorn_actors.trace.filters import DeliveryFilter
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.show import NewFacts
from yunikorn_actors.trace.text.summary import message_summary

MESSAGES: Final = Limit("a sequence diagram of Mermaid", 40)
FACTS_MAX: Final = 4
"""How many facts of a message are named; the others are counted."""
_OUTSIDE: Final = "outside"
_INDENT: Final = "    "
_MARKS: Final = re.compile(r"[^A-Za-z0-9 _.,/=+()-]|-(?=[->x)])|\bend\b", re.IGNORECASE)
"""What has a meaning there, or may have one: only these are surely text."""


def mermaid(trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    diagram = _Diagram(NewFacts(sieve), sieve)
    steps = MESSAGES.of(trace, Timeline(trace.header).steps(trace, sieve))
    lines = [line for step in steps if step.is_wanted for line in diagram.lines(step.delivery)]
    yield "sequenceDiagram"
    for name, short in diagram.participants.items():
        yield f"{_INDENT}participant {short} as {plain(name)}"
    yield from (_INDENT + line for line in lines)


class _Diagram:
    def __init__(self, new_facts: NewFacts, sieve: DeliveryFilter) -> None:
        self.participants: dict[str, str] = {}
        self._new_facts = new_facts
        self._wanted = sieve.wanted

    def lines(self, delivery: Delivery) -> Iterator[str]:
        message = delivery.message
        sender, receiver = self._participant(delivery.sender), self._participant(delivery.mailbox)
        says = self._wanted.named(message_summary(message), message)
        joined = " (joined)" if delivery.joined else ""
        yield f"{sender}->>{receiver}: {plain(f'{type_name(message)} {says}{joined}')}"
        if isinstance(message, FactsAppended):
            facts = [plain(f"{kind} {words}") for kind, words in self._new_facts.of(message)]
            if facts:
                rest = len(facts) - FACTS_MAX
                more = [plain(f"+{rest} more")] if rest > 0 else []
                yield f"Note over {receiver}: {'<br/>'.join(facts[:FACTS_MAX] + more)}"

    def _participant(self, address: str) -> str:
        name = _OUTSIDE if is_outside(address) else address
        return self.participants.setdefault(name, f"p{len(self.participants)}")


def plain(text: str) -> str:
    """Write as codes what Mermaid could take for its own."""
    return _MARKS.sub(lambda found: "".join(f"#{ord(char)};" for char in found[0]), text).strip()
