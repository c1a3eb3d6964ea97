"""The answers to YuniKorn's routes: its paths, its names, its errors."""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec
import yaml

from yunikorn_actors.checks.health_checks import Health
from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.config.names import is_group_name, is_queue_name, is_user_name
from yunikorn_actors.config.policy_names import PolicyNames
from yunikorn_actors.machines.events.publisher import Ring
from yunikorn_actors.messages.callbacks import shown_record
from yunikorn_actors.messages.followers import ManagerDescribed
from yunikorn_actors.messages.queries import CountsFound
from yunikorn_actors.recording.secret_values import masked_dump, masked_json
from yunikorn_actors.service.metrics.exposition import TYPE as METRICS
from yunikorn_actors.service.metrics.exposition import exposition
from yunikorn_actors.service.metrics.families import families
from yunikorn_actors.service.read import applications, clusters, configuration, nodes
from yunikorn_actors.service.read import owner_usage as usage
from yunikorn_actors.service.read.incremental_answers import LOOKS, Each, Steps
from yunikorn_actors.service.read.queues import Queues
from yunikorn_actors.service.read.read_model import ReadSide
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.service.rest.exchange import TEXT, YAML, Answer, Asked, Refusal, Route, Texts
from yunikorn_actors.service.rest.json_stream import Foreign, Style
from yunikorn_actors.state.applications import Application, ApplicationState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.masking import masked
from yunikorn_actors.values.quantity import UINT64_MAX

BATCH_MAX: Final = 10_000
HEALTH_NS: Final = 30 * SECOND
"""How long the outcome of a health check holds: each check looks at everything."""
_DIGITS_MAX: Final = 100
"""Zeros in front say nothing; but very many digits take long to read."""
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_FAULT: Final = 500
_MOVED: Final = 301


# -- who is meant


def book_of(side: ReadSide, asked: Asked) -> Book:
    book = side.partition(asked.path["partition"])
    if book is None or not book.state.queues:
        raise Refusal(_NOT_FOUND, "Partition not found")
    return book


def _queue(book: Book, asked: Asked) -> Queue:
    path = asked.path["queue"]
    # Each part by itself, as YuniKorn names the one that is wrong.
    for name in path.split("."):
        if not is_queue_name(name):
            raise Refusal(_BAD_REQUEST, f"problem in queue query parameter parsing: {name!r}")
    queue = book.state.queue(path)
    if queue is None:
        raise Refusal(_NOT_FOUND, "Queue not found")
    return queue


def _application(book: Book, asked: Asked) -> Application:
    app = book.state.applications.get(asked.path["application"])
    if app is None:
        raise Refusal(_NOT_FOUND, "Application not found")
    return app


def _status(asked: Asked) -> ApplicationState | None:
    text = asked.query.get("status", "")
    if text and text.lower() not in applications.STATUSES:
        known = ", ".join(applications.STATUSES)
        raise Refusal(
            _BAD_REQUEST, f"Only following active statuses are allowed: {known}", f"not {text!r}"
        )
    return applications.STATUSES[text.lower()] if text else None


# -- the pages


def _clusters(side: ReadSide, _: Asked) -> Any:  # noqa: ANN401 - a value
    return masked_dump({"shown": clusters.clusters(side)})["shown"]


def _partitions(side: ReadSide, _: Asked) -> Any:  # noqa: ANN401 - a value
    return [clusters.partition(book) for book in side.books.values()]


def _queues(side: ReadSide, asked: Asked) -> Steps[Any]:
    book = book_of(side, asked)
    shown = yield from Queues.measured(book, side.settings, side.names)
    return shown.tree()


def _one_queue(side: ReadSide, asked: Asked) -> Steps[Any]:
    book = book_of(side, asked)
    queue = _queue(book, asked)
    shown = yield from Queues.measured(book, side.settings, side.names)
    return shown.queue(queue, subtree="subtree" in asked.query)


def _queue_applications(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book = book_of(side, asked)
    queue = _queue(book, asked)
    if asked.path.get("state", "active").lower() != "active":
        raise Refusal(_BAD_REQUEST, "Only following application states are allowed: active")
    return applications.active(book, queue=queue.path, status=_status(asked))


_BY_STATE: Final[dict[str, Callable[[Book, Asked], Any]]] = {
    "active": lambda book, asked: applications.active(book, status=_status(asked)),
    "rejected": lambda book, _: applications.rejected(book),
    "completed": lambda book, _: applications.completed(book),
}


def _applications(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book = book_of(side, asked)
    listed = _BY_STATE.get(asked.path["state"].lower())
    if listed is None:
        known = ", ".join(_BY_STATE)
        raise Refusal(_BAD_REQUEST, f"Only following application states are allowed: {known}")
    _status(asked)  # What is none is refused even where it chooses nothing.
    return listed(book, asked)


def _one_application(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book = book_of(side, asked)
    queue = _queue(book, asked) if "queue" in asked.path else None
    app = _application(book, asked)
    # Found, but in another queue: for this address there is none.
    if queue is not None and app.queue is not queue:
        raise Refusal(_NOT_FOUND, "Application not found")
    return applications.application(book, app)


def _nodes(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    return nodes.nodes(book_of(side, asked))


def _one_node(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book = book_of(side, asked)
    node = book.state.nodes.get(asked.path["node"])
    if node is None:
        raise Refusal(_NOT_FOUND, "Node not found")
    return nodes.node(book, node)


def _rules(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    config = book_of(side, asked).state.config
    return [] if config is None else configuration.rules(config)


# -- who uses how much: YuniKorn does not look at the partition


def _any_book(side: ReadSide, asked: Asked) -> Book | None:
    return side.partition(asked.path["partition"]) or next(iter(side.books.values()), None)


def _users(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book = _any_book(side, asked)
    return [] if book is None else usage.users(book)


def _groups(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book = _any_book(side, asked)
    return [] if book is None else usage.groups(book)


def _user(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book, name = _any_book(side, asked), asked.path["user"]
    if not is_user_name(name):
        raise Refusal(_BAD_REQUEST, "Invalid user name")
    if book is None or name not in book.state.users:
        raise Refusal(_NOT_FOUND, "User not found")
    return usage.user(book, name)


def _group(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    book, name = _any_book(side, asked), asked.path["group"]
    if not is_group_name(name):
        raise Refusal(_BAD_REQUEST, "Invalid group name")
    if book is None or name not in book.state.groups:
        raise Refusal(_NOT_FOUND, "Group not found")
    return usage.group(book, name)


# -- events


def number_of(asked: Asked, name: str, default: int, least: int) -> int:
    text = asked.query.get(name)
    if text is None:
        return default
    # YuniKorn answers in the words of Go's parser.
    if not (text.isascii() and text.isdecimal()):
        raise Refusal(_BAD_REQUEST, f'strconv.ParseUint: parsing "{text:.100}": invalid syntax')
    if len(text) > _DIGITS_MAX or int(text) > UINT64_MAX:
        raise Refusal(_BAD_REQUEST, f'strconv.ParseUint: parsing "{text:.100}": value out of range')
    if int(text) < least:
        raise Refusal(_BAD_REQUEST, f'{text} is not a valid value for "{name}"')
    return int(text)


def check_tracked(side: ReadSide) -> None:
    # Only if all of them have switched it off; before the first manager it counts as on.
    if side.managers and not any(it.extra.events_tracked for it in side.managers.values()):
        raise Refusal(_FAULT, "Event tracking is disabled")


def _events(side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
    check_tracked(side)
    count = min(BATCH_MAX, number_of(asked, "count", BATCH_MAX, 1))
    ring = side.events.ring
    return {
        "InstanceUUID": side.instance,
        "LowestID": ring.lowest_id,
        "HighestID": ring.highest_id,
        "EventRecords": _records(ring, number_of(asked, "start", 0, 0), count),
    }


def _records(ring: Ring, first: int, count: int) -> Each | None:
    """Return records that are read while they are written; None if the first is not stored."""
    # Nothing is stored there, which is another answer than an empty list.
    if not ring.read(first, 1):
        return None
    end = min(first + count, ring.next_id)
    # As they are written: the ring may hold very many.
    parts = (ring.read(it, min(LOOKS, end - it)) for it in range(first, end, LOOKS))
    return Each(shown_record, chain.from_iterable(parts))


# -- health, history


def _utilizations(side: ReadSide, _: Asked) -> Any:  # noqa: ANN401 - a value
    return Each(nodes.utilizations, side.books.values())


class Checkup:
    """The outcome of the last health check, kept while it is fresh."""

    def __init__(self) -> None:
        self._found: Health | None = None
        self._until_ns = 0

    def __call__(self, side: ReadSide, asked: Asked) -> Any:  # noqa: ANN401 - a value
        # Not looked at again for a while: it walks over everything.
        if self._found is not None and side.now_ns < self._until_ns:
            return clusters.shown_health(self._found)
        return Answer(partial(self._look, side, asked.answer), reads_state=True)

    def _look(self, side: ReadSide, answer: Any) -> Any:  # noqa: ANN401 - values
        counts = msgspec.convert(answer["counts"], CountsFound)
        found = clusters.health(
            side,
            counts,
            answer["trace_failure"],
            answer["configuration_fault"],
            answer["read_side_fault"],
        )
        # Kept after the answer was made, on the thread that made it.
        self._found, self._until_ns = found, side.now_ns + HEALTH_NS
        return clusters.shown_health(found)


def _applications_over_time(side: ReadSide, _: Asked) -> Any:  # noqa: ANN401 - a value
    return clusters.applications_over_time(side)


def _containers_over_time(side: ReadSide, _: Asked) -> Any:  # noqa: ANN401 - a value
    return clusters.containers_over_time(side)


# -- configuration


def _first_manager(side: ReadSide) -> ManagerDescribed | None:
    """Return the resource manager that came first: its configuration is shown."""
    return next(iter(side.managers.values()), None)


def shown_config(manager: ManagerDescribed | None, *, piecemeal: bool = False) -> dict[str, Any]:
    """Return a manager's configuration and extra settings; secrets are not covered yet."""
    return configuration.document(manager, piecemeal=piecemeal) | {
        "checksum": "" if manager is None else manager.config.checksum,
        "extra": {} if manager is None else dict(sorted(manager.extra_config.items())),
        "deadlockdetectionenabled": False,
        "deadlocktimeoutseconds": 0,
    }


def _config(side: ReadSide, asked: Asked) -> Answer:
    manager = _first_manager(side)
    # YAML is what YuniKorn answers unless JSON is asked for by name.
    if asked.accept == "application/json":
        return Answer(partial(_config_json, manager))
    return Answer(partial(_config_text, manager), YAML)


def _config_json(manager: ManagerDescribed | None) -> Any:  # noqa: ANN401 - a value
    return configuration.in_go_names(masked_dump(shown_config(manager)))


def _config_text(manager: ManagerDescribed | None) -> bytes:
    shown = masked_dump(shown_config(manager))
    return yaml.safe_dump(shown, sort_keys=False, allow_unicode=True).encode()


def _validate(side: ReadSide, asked: Asked) -> Answer:
    return Answer(partial(_verdict, asked.body, side.names))


def _verdict(body: bytes, names: PolicyNames) -> Any:  # noqa: ANN401 - a value
    try:
        parse_config(body.decode(), names)
    except (ConfigError, UnicodeDecodeError) as error:
        return {"allowed": False, "reason": masked(str(error))}
    return {"allowed": True}


# -- diagnostics


def _dump(side: ReadSide, asked: Asked) -> Answer:
    """Everything at once, as YuniKorn's support collects it; each part is made as it is written."""
    books = list(side.books.values())
    dump = {
        "timestamp": side.now_ns,
        "partitions": [clusters.partition(book) for book in books],
        "applications": Each(
            lambda app: app,
            (
                app
                for book in books
                for listed in (applications.active, applications.completed, applications.rejected)
                for app in listed(book)
            ),
        ),
        "appHistory": clusters.applications_over_time(side),
        "nodes": [
            {"partitionName": book.short_name, "nodesInfo": nodes.nodes(book)} for book in books
        ],
        "clusterInfo": clusters.clusters(side),
        "containerHistory": clusters.containers_over_time(side),
        "queues": [_tree(book, side) for book in books if book.state.queues],
        "rmDiagnostics": Foreign(asked.answer),
        "logLevel": "INFO",
        "config": configuration.in_go_names(shown_config(_first_manager(side), piecemeal=True)),
        "placementRules": [
            {"partition": book.short_name, "rules": configuration.rules(book.state.config)}
            for book in books
            if book.state.config is not None
        ],
        "eventStreams": side.streams(),
    }
    return Answer(dump, style=Style(masked_json, is_indented=True))


def _tree(book: Book, side: ReadSide) -> Steps[Any]:
    return (yield from Queues.measured(book, side.settings, side.names)).tree()


def _metrics(side: ReadSide, asked: Asked) -> Answer:
    return Answer(Texts(exposition(families(side, asked.answer))), METRICS)


def _stack(_: ReadSide, asked: Asked) -> Answer:
    return Answer(asked.answer.encode(), TEXT)


def _moved(path: str) -> Callable[[ReadSide, Asked], Answer]:
    body = f'<a href="{path}">Moved Permanently</a>.\n\n'.encode()
    answer = Answer(body, "text/html; charset=utf-8", {"Location": path}, _MOVED)
    return lambda _, __: answer


_P: Final = "/ws/v1/partition/{partition}"
_Q: Final = f"{_P}/queue/{{queue}}"


def routes() -> tuple[Route, ...]:
    """Return all of them; what one of them remembers belongs to these alone."""
    of_queue, of_state = f"{_Q}/applications", f"{_Q}/applications/{{state}}"
    return (
        Route("/ws/v1/clusters", "one for each partition", _clusters),
        Route("/ws/v1/partitions", "the partitions", _partitions),
        Route(f"{_P}/queues", "the tree of queues", _queues),
        Route(_Q, "one queue; with `subtree` all below it", _one_queue, queries=("subtree",)),
        Route(of_queue, "active applications of a leaf", _queue_applications, queries=("status",)),
        Route(of_state, "the same, of state `active`", _queue_applications, queries=("status",)),
        Route(f"{_Q}/application/{{application}}", "one active application", _one_application),
        Route(
            f"{_P}/applications/{{state}}",
            "applications: active, rejected or completed",
            _applications,
            queries=("status",),
        ),
        Route(f"{_P}/application/{{application}}", "one active application", _one_application),
        Route(f"{_P}/nodes", "the nodes", _nodes),
        Route(f"{_P}/node/{{node}}", "one node", _one_node),
        Route(f"{_P}/placementrules", "the placement rules, in their order", _rules),
        Route(f"{_P}/usage/users", "what users have", _users),
        Route(f"{_P}/usage/user/{{user}}", "what one user has", _user),
        Route(f"{_P}/usage/groups", "what groups have", _groups),
        Route(f"{_P}/usage/group/{{group}}", "what one group has", _group),
        Route("/ws/v1/events/batch", "event records", _events, queries=("count", "start")),
        Route("/ws/v1/scheduler/healthcheck", "checks of health", Checkup(),
              lambda _, __: ("health",)),
        Route("/ws/v1/scheduler/node-utilizations", "how many nodes are how full", _utilizations),
        Route("/ws/v1/history/apps", "running applications, minute by minute",
              _applications_over_time),
        Route("/ws/v1/history/containers", "allocations, minute by minute", _containers_over_time),
        Route("/ws/v1/metrics", "metrics, in Prometheus' text format", _metrics,
              lambda side, _: ("metrics", *side.books), is_diagnostic=True),
        Route("/ws/v1/config", "the configuration in force, as YAML or JSON", _config,
              is_apart=True),
        Route("/ws/v1/validate-conf", "whether a configuration would be taken", _validate,
              method="POST", is_apart=True),
        Route("/debug/fullstatedump", "everything at once", _dump, lambda _, __: ("diagnostics",),
              is_apart=True, is_diagnostic=True),
        Route("/debug/stack", "what every thread is doing", _stack, lambda _, __: ("stacks",),
              is_diagnostic=True),
        Route("/ws/v1/fullstatedump", "moved", _moved("/debug/fullstatedump"), is_diagnostic=True),
        Route("/ws/v1/stack", "moved", _moved("/debug/stack"), is_diagnostic=True),
    )  # fmt: skip
