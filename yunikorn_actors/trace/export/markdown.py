"""The recording as a page of Markdown: a table with one message on a line, its facts below it."""

import re
from collections.abc import Iterator

from yunikorn_actors.messages.base import Delivery
from yunikorn_actors.messages.codec import type_name
from yunikorn_actors.messages.scheduling import FactsAppended
from yunikorn_actors.recording.plain_text import printable
from yunikorn_actors.trace.filters import DeliveryFilter, FilterOptions
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.text.show import NewFacts, ending, origin
from yunikorn_actors.trace.text.summary import message_summary

_MARKS = re.compile(r"[\\`*\[\]<>|~&$]|(?<!\w)_|_(?!\w)")
"""What Markdown acts on inside of a cell; between letters an underscore is none of it."""
_COLUMNS = ("number", "ms", "stimulus", "from", "to", "message", "what it says")


def markdown(trace: TraceReader, sieve: DeliveryFilter) -> Iterator[str]:
    wanted, header = sieve.wanted, trace.header
    new_facts = NewFacts(sieve)
    seed = "" if header.seed is None else f", seed {header.seed}"
    yield f"# {plain(trace.path.name)}"
    yield ""
    yield plain(f"{header.topology} topology, driver {header.driver}{seed}, {header.instance}")
    yield ""
    yield _row(*_COLUMNS)
    yield _row(*("---",) * len(_COLUMNS))
    for number, delivery in enumerate(trace, start=1):
        if sieve(delivery):
            yield _message(number, (delivery.at_ns - header.start_ns) / 1e6, delivery, wanted)
            if isinstance(delivery.message, FactsAppended):
                for kind, words in new_facts.of(delivery.message):
                    yield _row("", "", "", "", "", plain(kind), plain(words))
    yield ""
    yield plain(ending(trace))


def _message(number: int, milliseconds: float, delivery: Delivery, wanted: FilterOptions) -> str:
    joined = " +" if delivery.joined else ""
    return _row(
        str(number),
        f"{milliseconds:.3f}",
        plain(delivery.stimulus),
        plain(origin(delivery)),
        plain(f"{delivery.mailbox}/{delivery.step}{joined}"),
        plain(type_name(delivery.message)),
        plain(wanted.named(message_summary(delivery.message), delivery.message)),
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def plain(text: str) -> str:
    """Escape what Markdown would act on."""
    return _MARKS.sub(r"\\\g<0>", printable(text))
