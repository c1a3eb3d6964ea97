"""What a live page is sent, what it shows of the last hours, and what is simulated beside it."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.route_answers import NOTHING, things_in
from yunikorn_actors.service.listener import Questions
from yunikorn_actors.service.read.incremental_answers import at_once
from yunikorn_actors.service.read.overview import course
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.rest.exchange import Asked, Refusal
from yunikorn_actors.service.rest.live_page import Live
from yunikorn_actors.service.rest.loop_slices import Slices
from yunikorn_actors.service.rest.simulate_route import simulate_route
from yunikorn_actors.values.durations import HOUR, MINUTE, SECOND

Picture = tuple[str, Any]
_BETWEEN_NS: Final = (SECOND, 10 * SECOND, 10 * SECOND, MINUTE, 20 * MINUTE, 3 * HOUR)
_SAMPLES: Final = 6
_HOURS: Final = (1, 2, 24)
_ROLES: Final = ("Context", "Scheduler:[rm]default/0", "Scheduler:[rm]default/1", "RmProxy")
_STEPS: Final = (
    "- drain_node: {node}",
    "- undrain_node: {node}\n- advance: 5s\n- remove_node: {node}",
    "- create_node: {{id: more, capacity: {{vcore: 8, memory: 16G}}, count: 2}}",
    "- ask: {{app: {application}, key: more, resource: {{vcore: 1}}, count: 3}}",
    """
- add_app: {{id: new, queue: {queue}, user: ann}}
- ask: {{app: new, key: new, resource: {{vcore: 2}}, count: 2}}
""",
    "- remove_app: {application}",
    "- release_ask: {{app: {application}, key: {key}}}",
    "- reconfigure: {{queue: {queue}, max: {{vcore: 3}}, max_applications: 1}}",
    "- advance: 10s", "- odd: {node}", "- [",
)  # fmt: skip
_UNTIL: Final = (*(5.0, 60.0) * 4, -1.0)
"""Not so far that it takes long: a copy that works for long waits for all others."""


class _Figures:
    """Answers as a core does, with figures of actors that nobody measured."""

    def __init__(self, questions: Questions, draw: Draw) -> None:
        self._questions, self._draw = questions, draw

    def ask(self, question: str, *arguments: str) -> Any:  # noqa: ANN401 - plain values
        if question != "mailboxes":
            return self._questions.ask(question, *arguments)
        draw = self._draw
        actors = {
            role.partition(":")[0]: {
                "messages": draw.number(40), "waiting_ns": draw.number(SECOND),
                "handling": {"total_ns": draw.number(SECOND)}, "worst_ns": draw.number(SECOND),
            }
            for role in _ROLES
        }  # fmt: skip
        flows = [(draw.one_of(_ROLES), draw.one_of(_ROLES), "Some", draw.number(9)) for _ in "abc"]
        metered = {"actors": actors, "flows": flows, "dead_letters": draw.number(3)}
        return {
            "lengths": {role: draw.number(5) for role in _ROLES},
            "metered": None if draw.once_in(3) else metered,
            "callback_errors": {"rm": draw.number(3), "other": draw.number(3)},
            "unhandled": {"rm": draw.number(3)},
        }


def pictures(side: ReadSide, questions: Questions, draw: Draw) -> Iterator[Picture]:
    figures = _Figures(questions, draw)
    now_ns = side.now_ns
    states = {name: book.state for name, book in side.books.items()}
    for _ in range(_SAMPLES):
        now_ns += draw.one_of(_BETWEEN_NS)
        at_once(side.courses.take(states, figures.ask("mailboxes"), now_ns))
    side.catch_up(now_ns)
    for name, book in side.books.items():
        yield f"how the load of {name} went on", [course(side, book, hours) for hours in _HOURS]
    names = ["", *side.books, "nowhere"]
    for name in names[: 1 + draw.number(len(names))]:
        failure = draw.one_of(("", "", "it is over"))
        yield (
            f"a live page of {name or 'the first partition'}",
            _shown(side, figures, name, failure),
        )


def _shown(side: ReadSide, questions: Questions, name: str, failure: str) -> str:
    async def first() -> str:
        slices = Slices(side.handle)
        live = Live(side, questions, lambda: side.now_ns, lambda: failure, asyncio.Event(), slices)
        with live.opened(name):
            following = live.follow(name)
            found = await anext(following)
            await following.aclose()
        return found.decode()

    return asyncio.run(first())


def simulated(side: ReadSide, draw: Draw) -> Iterator[Picture]:
    """Ask the route twice, with other questions; each is answered by a copy of this process."""
    route, things = simulate_route(), draw.one_of([*map(things_in, side.books.values()), NOTHING])
    for _ in range(2):
        question = {
            "steps": [draw.one_of(_STEPS).format(**things) for _ in range(draw.number(3))],
            "until": draw.one_of(_UNTIL), "compare": draw.once_in(2),
        }  # fmt: skip
        body = json.dumps(question).encode() if not draw.once_in(20) else b"{"
        yield (
            f"simulated with {question}",
            _answered(partial(route.handler, side, Asked(body=body))),
        )


def _answered(ask: Any) -> str:  # noqa: ANN401 - a handler
    try:
        found = ask().content()
    except Refusal as refusal:
        return f"{refusal.status}: {refusal.text}"
    return bytes(found).decode()
