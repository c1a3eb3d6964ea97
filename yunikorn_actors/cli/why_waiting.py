"""Why asks of a running service wait: one of them, those of an application, or all by reason."""

import argparse
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from yunikorn_actors.cli.apps import applications_called
from yunikorn_actors.cli.rows import Application, read
from yunikorn_actors.cli.service_calls import OWN, AskedPartition, Found, asked_partitions
from yunikorn_actors.cli.terminal import tell, tell_sentences
from yunikorn_actors.errors import UnknownName
from yunikorn_actors.planning.reasons import Why, what_became
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.values.close_names import did_you_mean


class Waiting(Struct):
    """What a planner says of the asks of a partition; of very many not each."""

    total: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    """How many wait for what first."""
    asks: tuple[Why, ...] = ()


def why_there(options: argparse.Namespace, client: Client) -> int:
    chosen = asked_partitions(client, options.partition)
    if options.key:
        return _why_one(options, client, chosen)
    if options.application:
        return _why_application(options, client, chosen)
    return tell_waiting(options, {place.name: _waiting(client, place) for place in chosen})


def _waiting(client: Client, place: AskedPartition) -> Waiting:
    return read(client.get(*place.own_path("waiting")), Waiting)


# -- one ask


def _why_one(options: argparse.Namespace, client: Client, chosen: list[AskedPartition]) -> int:
    app, key = options.application, options.key
    named = {"partition": chosen[0].name} if options.partition and len(chosen) == 1 else {}
    try:
        why = read(client.get(*OWN, "why", application=app, key=key, **named), Why)
    except UnknownName as error:
        # Either of the two names may be misspelt; an application that is unknown says so itself.
        found = applications_called(client, app, chosen)
        keys = {
            it.allocation_key for app in found for it in (*app.row.requests, *app.row.allocations)
        }
        raise UnknownName(f"{error}{did_you_mean(key, keys)}") from None
    tell_sentences((why,) if options.json else None, why.lines())
    return 0


# -- those of an application


def _why_application(
    options: argparse.Namespace, client: Client, chosen: list[AskedPartition]
) -> int:
    asks: list[Why] = []
    lines: list[str] = []
    for it in applications_called(client, options.application, chosen):
        own = tuple(
            why
            for why in _waiting(client, it.place).asks
            if why.application_id == it.row.id and it.row.is_alive
        )
        asks.extend(own)
        lines.extend(_lines_of_found(it, own))
    tell_sentences(asks if options.json else None, lines)
    return 0


def _lines_of_found(it: Found[Application], asks: tuple[Why, ...]) -> Iterable[str]:
    app = it.row
    if not app.is_alive:
        became = what_became(app.application_state, app.rejected_message)
        return (f"application {app.id} of {it.place.name}: {became}",)
    head = f"{app.id} of {it.place.name}: {app.application_state} in {app.queue_name}"
    return lines_of_application(head, len(app.requests), len(app.allocations), asks)


def lines_of_application(
    head: str, waiting: int, running: int, asks: tuple[Why, ...]
) -> tuple[str, ...]:
    unexplained = waiting - sum(why.waits for why in asks)
    more = [f"asks that are not explained here: {unexplained}"] if unexplained > 0 else []
    counts = f"asks that wait: {waiting}, allocations: {running}"
    return (f"application {head}; {counts}", *lines_of(asks), *more)


def lines_of(asks: Iterable[Why]) -> tuple[str, ...]:
    return tuple(line for why in asks for line in why.lines())


# -- all


def tell_waiting(options: argparse.Namespace, found: Mapping[str, Waiting]) -> int:
    """Tell how many wait for what, with one of each; as JSON each that is explained."""
    if options.json:
        tell((why for waiting in found.values() for why in waiting.asks), ())
    else:
        tell_sentences(None, _lines_of_all(found))
    return 0


def _lines_of_all(found: Mapping[str, Waiting]) -> Iterator[str]:
    """The most common cause first; a cause without an explained ask has its number alone."""
    yield f"asks that wait: {sum(waiting.total for waiting in found.values())}"
    for name, waiting in found.items():
        first = {why.obstacle.cause.value: why for why in reversed(waiting.asks)}
        where = f" in {name}" if len(found) > 1 else ""
        for cause, count in sorted(waiting.causes.items(), key=lambda it: (-it[1], it[0])):
            why = first.get(cause)
            example = "" if why is None else f", such as {why.key} of {why.application_id}"
            yield f"{count} for {cause}{where}{example}"
            if why is not None:
                yield from (f"  {it}" for it in (why.obstacle.text, why.obstacle.remedy) if it)
