"""Applications as YuniKorn's REST interface shows them, those that have ended too."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from yunikorn_actors.recording.secret_values import masked_texts
from yunikorn_actors.service.read.incremental_answers import Each, Pauses, Steps, each, in_order
from yunikorn_actors.service.read.projection import AppNote, AskNote, Notes
from yunikorn_actors.service.read.queues import NO_PRIORITY, highest_priority
from yunikorn_actors.service.read.rendering import Value, lean, used
from yunikorn_actors.service.read.replica import Book
from yunikorn_actors.state.allocations import Allocation, Ask
from yunikorn_actors.state.applications import (
    Application,
    ApplicationState,
    FinishedApplication,
    ResourceSeconds,
    StateLog,
    TaskGroup,
    UsageHistory,
)
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import with_devices
from yunikorn_actors.values.durations import MILLISECOND
from yunikorn_actors.values.masking import masked

ASKS_AT_ONCE: Final = 1_000
NEVER_MS: Final = -62_135_596_800_000
"""The zero time of Go: an application that has not run yet started then."""
STATUSES: Final = {
    state.value.lower(): state
    for state in (
        ApplicationState.NEW,
        ApplicationState.ACCEPTED,
        ApplicationState.STARTING,
        ApplicationState.RUNNING,
        ApplicationState.COMPLETING,
        ApplicationState.FAILING,
        ApplicationState.RESUMING,
    )
}
"""By which active applications can be chosen."""
ALWAYS: Final = frozenset(
    {"applicationID", "partition", "queueName", "startTime", "resourceHistory"}
)
_KEYED: Final = frozenset({"allocationKey"})
_NO_NOTE: Final = AppNote()
_NOT_SAID: Final = AskNote()


def active(
    book: Book, *, queue: str = "", status: ApplicationState | None = None
) -> list[Value] | Each:
    """List the applications that have not ended, of one queue or of all."""
    chosen = [
        app
        for app in book.state.applications.values()
        if queue in {"", app.queue.path} and status in {None, app.state}
    ]
    return each(partial(application, book), chosen)


def completed(book: Book) -> list[Value] | Each:
    ended = book.state.finished.items()
    chosen = [app for serial, app in ended if serial not in book.state.rejected]
    return each(partial(finished, book), chosen)


def rejected(book: Book) -> list[Value] | Each:
    chosen = [book.state.finished[serial] for serial in book.state.rejected]
    return each(partial(finished, book), chosen)


def application(book: Book, app: Application) -> Value | Steps[Value]:
    """Show it; one with very many asks in steps."""
    # In steps: such a page takes long, and other pages must not wait for it.
    if len(app.asks) > ASKS_AT_ONCE:
        return _large(book, app)
    requests = each(_shown(book, app), app.waiting_asks())
    return _application(book, app, requests, highest_priority(app.asks.values()))


def _large(book: Book, app: Application) -> Steps[Value]:
    waiting, highest, pauses = list[Ask](), NO_PRIORITY, Pauses()
    for ask in app.asks.values():
        if ask.remaining:
            waiting.append(ask)
            highest = max(highest, ask.spec.priority)
        if pauses.due:
            yield
    ordered = yield from in_order(waiting, Ask.order)
    requests: list[Value] | Each = Each(_shown(book, app), ordered) if waiting else []
    return _application(book, app, requests, highest)


def _shown(book: Book, app: Application) -> Callable[[Ask], Value]:
    note = book.notes.apps.get(app.serial, _NO_NOTE)
    return lambda ask: request(ask, note.asks.get(ask.spec.key, _NOT_SAID))


def _application(
    book: Book, app: Application, requests: list[Value] | Each, priority: int
) -> Value:
    note = book.notes.apps.get(app.serial, _NO_NOTE)
    # One line for each reservation, as YuniKorn has them: an ask may have several.
    reserved = [key for ask in app.asks.values() for key in (ask.spec.key,) * len(ask.reserved)]
    return lean(
        _common(book, app, note)
        | {
            "usedResource": used(app.allocated),
            "pendingResource": used(app.pending),
            "queueName": app.queue.path,
            "requests": requests,
            "allocations": each(
                lambda it: allocation(it, app, book.notes), app.allocations.values()
            ),
            "placeholderData": _placeholders(app.task_groups, note),
            "hasReserved": bool(reserved),
            "reservations": reserved,
            # YuniKorn shows 0 where no ask waits.
            "maxRequestPriority": 0 if priority == NO_PRIORITY else priority,
        },
        ALWAYS,
    )


def finished(book: Book, app: FinishedApplication) -> Value:
    note = book.notes.apps.get(app.serial, _NO_NOTE)
    is_rejected = app.serial in book.state.rejected
    return lean(
        _common(book, app, note)
        | {
            "queueName": app.queue,
            "finishedTime": app.state_log.entries[-1].at_ns,
            "rejectedMessage": masked(app.message) if is_rejected else "",
            "placeholderData": _placeholders(note.task_groups, note),
        },
        ALWAYS,
    )


def _common(book: Book, app: Application | FinishedApplication, note: AppNote) -> Value:
    return {
        "applicationID": app.spec.application_id,
        "maxUsedResource": used(note.peak),
        "partition": book.short_name,
        "submissionTime": app.submitted_ns,
        "applicationState": app.state.value,
        "user": app.spec.user,
        "groups": list(app.spec.groups),
        "stateLog": _state_log(app.state_log),
        "startTime": app.started_ns // MILLISECOND if app.started_ns else NEVER_MS,
        "resourceHistory": _history(app.history),
    }


def _state_log(log: StateLog) -> list[Value]:
    return [{"time": it.at_ns, "applicationState": it.state.value} for it in log.entries]


def _placeholders(groups: Mapping[str, TaskGroup], note: AppNote) -> list[Value]:
    return [
        lean(
            {
                "taskGroupName": name,
                "count": group.count,
                "minResource": used(note.smallest.get(name)),
                "replaced": group.replaced,
                "timedout": group.timed_out,
            }
        )
        for name, group in sorted(groups.items())
    ]


def _history(history: UsageHistory) -> Value:
    return lean(
        {
            "resourceUsage": _seconds(history.used),
            "preemptedResource": _seconds(history.preempted),
            "placeholderResource": _seconds(history.placeholder),
        }
    )


def _seconds(part: ResourceSeconds) -> Value:
    return {instance: used(amounts) for instance, amounts in sorted(part.items())}


def request(ask: Ask, note: AskNote) -> Value:
    """Show an ask of which something waits, once, however many repeats do."""
    spec = ask.spec
    return lean(
        {
            "allocationKey": spec.key,
            "allocationTags": masked_texts(spec.tags),
            "requestTime": ask.created_ns,
            "resource": used(spec.resource),
            "priority": str(spec.priority),
            "requiredNodeId": spec.required_node,
            "applicationId": spec.application_id,
            "placeholder": spec.placeholder,
            "taskGroupName": spec.task_group,
            "allocationLog": list(_log(note)),
            "triggeredPreemption": note.has_preempted,
            "originator": spec.originator,
            "schedulingAttempted": bool(ask.reported or ask.parked or note.log or ask.shortage),
            "triggeredScaleUp": note.wants_node,
        },
        _KEYED,
    )


def _log(note: AskNote) -> Iterator[Value]:
    for said in note.log.values():
        yield {"message": said.message, "lastOccurrence": said.last_ns, "count": said.count}


def allocation(it: Allocation, app: Application, notes: Notes) -> Value:
    spec = it.spec
    ask = app.asks.get(spec.key)
    replaced_ns = notes.requested.get(it.uuid)
    # Its ask may have gone since, and then only the allocation is known.
    asked_ns = it.allocated_ns if ask is None else ask.created_ns
    requested_ns = asked_ns if replaced_ns is None else replaced_ns
    return lean(
        {
            "allocationKey": spec.key,
            "allocationTags": masked_texts(with_devices(spec.tags, it.devices)),
            "requestTime": requested_ns,
            "allocationTime": it.allocated_ns,
            "allocationDelay": it.allocated_ns - requested_ns,
            "resource": used(it.resource),
            "priority": str(spec.priority),
            "nodeId": it.node_id,
            "applicationId": spec.application_id,
            "placeholder": spec.placeholder,
            "placeholderUsed": replaced_ns is not None,
            "taskGroupName": spec.task_group,
            "preempted": it.releasing is TerminationType.PREEMPTED_BY_SCHEDULER,
            "originator": spec.originator,
        },
        _KEYED,
    )
