"""What policies keep of their own, and the facts as they see them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct, convert

from yunikorn_actors.config import GangAdmission
from yunikorn_actors.policies.guard import shown, tried
from yunikorn_actors.policies.inputs import (
    Arrived,
    Candidate,
    Change,
    Ended,
    Job,
    Left,
    Sized,
    Started,
    declared_ns,
)
from yunikorn_actors.policies.places import Fold
from yunikorn_actors.policies.registry import Policies
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation, Ask, AskSpec
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.gangs import awaits_admission
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.recorded_form import as_recorded
from yunikorn_actors.values.resource import Resource, charge
from yunikorn_actors.values.tags import TAG_RUNTIME


class Unread(Struct):
    """A fold in the hands of who cannot ask its policy: what it kept, and what came since then."""

    kept: Any = None
    since: list[tuple[Change, int]] = []
    is_fold: bool = True
    """Whether its policy may keep anything: what was noted last says so."""

    def observe(self, fact: Change, now_ns: int) -> None:
        if self.is_fold:
            self.since.append((fact, now_ns))


class UnreadPolicies(Policies):
    """Whatever a name stands for may be a fold."""

    def make(self, name: str) -> Unread:  # noqa: ARG002 - whatever it is
        return Unread()

    def has(self, name: str, digest: str) -> bool:  # noqa: ARG002 - who has them compares
        return True


class Folds:
    """The folds of a partition, one for each queue whose policy is one.

    They are part of the state: truth and replicas have them, and an image has what they keep.
    """

    makes: Final[frozenset[type]] = frozenset({f.QueueAdded, f.QueueReconfigured, f.QueueRemoved})

    def __init__(self, policies: Policies) -> None:
        self.policies = policies
        self.by_queue: dict[str, Any] = {}
        self.failed: dict[str, tuple[str, str]] = {}
        """Queues whose fold has raised, its name, and what: from then on it decides nothing."""
        self._digests: dict[str, str] = {}
        """Of which source these were: what was mended since is tried again."""
        self._names: dict[str, str] = {}
        self.changes = 0
        """How often one of them was given something."""

    def observe(self, state: PartitionState, fact: f.Fact) -> None:
        kind = type(fact)
        if kind in self.makes:
            self._follow_queue(state, fact)
        if self.by_queue and (read := _READERS.get(kind)) is not None:
            for change in read(state, fact):
                self._show(change, fact.at_ns)  # type: ignore[union-attr]

    def _follow_queue(self, state: PartitionState, fact: f.Fact) -> None:
        if isinstance(fact, f.QueueAdded | f.QueueReconfigured):
            self._look_at(state, state.queues[fact.path], fact.at_ns)
        elif isinstance(fact, f.QueueRemoved):
            self._forget(fact.path)

    def _show(self, change: Change, now_ns: int) -> None:
        self.changes += 1
        for path, fold in tuple(self.by_queue.items()):
            if not isinstance(change, Arrived | Left) or change.job.queue == path:
                self._tell(path, fold, change, now_ns)

    def _tell(self, path: str, fold: Fold, change: Change, now_ns: int) -> None:
        watch = self.policies.watch
        _, fault = watch(path, self._names[path], "observe", lambda: fold.observe(change, now_ns))
        if fault:
            name = self._names[path]
            self._fail(path, name, fault, self.policies.digest(name))

    def _fail(self, path: str, name: str, fault: str, digest: str) -> None:
        self.by_queue.pop(path, None)
        self._names[path], self.failed[path], self._digests[path] = name, (name, fault), digest

    def _look_at(self, state: PartitionState, queue: Queue, now_ns: int) -> None:
        """Its policy may be another now; one that it has had keeps what it knows."""
        name = policy_name(queue)
        if self._names.get(queue.path) == name:
            return
        self._forget(queue.path)
        if not name:
            return
        # One that cannot be made is reported by who plans, who needs it as well.
        fold, _ = tried("making it", lambda: self.policies.make(name))
        if isinstance(fold, Fold):
            self._names[queue.path], self.by_queue[queue.path] = name, fold
            for change, at_ns in _all_of(state, now_ns):
                if queue.path in self.by_queue and _concerns(change, queue.path):
                    self._tell(queue.path, fold, change, at_ns)

    def _forget(self, path: str) -> None:
        for table in (self._names, self.by_queue, self.failed, self._digests):
            table.pop(path, None)

    def takes_gangs(self, policy: str) -> bool:
        return self.policies.takes_gangs(policy)

    def has_gate(self, policy: str) -> bool:
        return self.policies.has_gate(policy)

    def image(self) -> dict[str, Any]:
        """Give what each keeps, and what has failed, so that it stays so for who goes on."""
        failed: dict[str, Any] = {
            path: [name, None, [], [fault, self._digests[path]]]
            for path, (name, fault) in self.failed.items()
        }
        return failed | self.kept()

    def kept(self) -> dict[str, Any]:
        """Give what each keeps; one whose fields cannot be written begins anew from this."""
        image: dict[str, Any] = {}
        for path, fold in self.by_queue.items():
            kept, _ = tried("writing what it keeps", partial(_image_of, fold))
            if kept is not None:
                image[path] = [self._names[path], *kept]
        return image

    def restore(self, state: PartitionState, image: dict[str, Any] | None) -> None:
        for table in (self.by_queue, self._names, self.failed, self._digests):
            table.clear()
        now_ns = max((app.submitted_ns for app in state.applications.values()), default=0)
        for queue in state.queues.values():
            name, *kept = (image or {}).get(queue.path, ("",))
            if kept and name == policy_name(queue):
                self._restore(queue.path, name, *kept)
            if queue.path in self._names:
                continue
            self._look_at(state, queue, now_ns)
            unread = self.by_queue.get(queue.path)
            if isinstance(unread, Unread) and name == policy_name(queue):
                self.by_queue[queue.path] = Unread(is_fold=False)

    def _restore(
        self,
        path: str,
        name: str,
        kept: Any,  # noqa: ANN401 - plain values
        since: Sequence[Any] = (),
        failure: Sequence[str] = (),
    ) -> None:
        """Begin with what it kept; with nothing where one failed that has been mended since."""
        if failure:
            fault, digest = failure
            if self.policies.has(name, digest):
                self._fail(path, name, fault, digest)
            return
        fold, fault = tried("making it", lambda: self.policies.make(name))
        if isinstance(fold, Unread):
            fold.kept, fold.since = kept, _changes(since)
        elif isinstance(fold, Fold) and kept is not None:
            fold, fault = tried("restoring what it kept", partial(convert, kept, type(fold)))
        if fault:
            self._fail(path, name, fault, self.policies.digest(name))
        if fault or not isinstance(fold, Fold):
            return
        self._names[path], self.by_queue[path] = name, fold
        if not isinstance(fold, Unread):
            for change, at_ns in _changes(since):
                if path in self.by_queue:
                    self._tell(path, fold, change, at_ns)

    def note(self, image: dict[str, Any]) -> None:
        """Take what policies keep as another wrote it just now, where these only follow facts."""
        for path, known in [*self._names.items()]:
            name, *kept = image.get(path, ("",))
            self.failed.pop(path, None)
            if kept and name == known:
                self._restore(path, name, *kept)
            else:
                self.by_queue[path] = Unread(is_fold=False)


def _image_of(fold: Fold) -> list[Any]:
    """As it comes back from a file: what was written is compared with what is."""
    if isinstance(fold, Unread) and not fold.is_fold:
        return []
    if isinstance(fold, Unread):
        return [fold.kept, as_recorded(fold.since)] if fold.since else [fold.kept]
    return [as_recorded(fold)]


def _changes(since: Any) -> list[tuple[Change, int]]:  # noqa: ANN401 - plain values
    return convert(since, list[tuple[Change, int]])


def policy_name(queue: Queue) -> str:
    properties = queue.properties
    return properties.application_policy if queue.spec.leaf else properties.queue_policy


def policies_in_use(states: Iterable[PartitionState]) -> set[str]:
    """Return which names of policies stand in these."""
    known = list(states)
    orders = (it.config.node_sort.policy for it in known if it.config is not None)
    return {*orders, *(policy_name(queue) for it in known for queue in it.queues.values())}


def digests_in_use(digests: Mapping[str, str], states: Iterable[PartitionState]) -> dict[str, str]:
    """Return those of the policies that stand in these: another one is not missed."""
    named = policies_in_use(states) if digests else set()
    return {name: digest for name, digest in digests.items() if name in named}


def _concerns(change: Change, path: str) -> bool:
    return not isinstance(change, Arrived | Left) or change.job.queue == path


# -- jobs


def has_gate(state: PartitionState, queue: Queue) -> bool:
    """Whether the policy of a leaf has a gate, also while it has failed and lets in everybody."""
    policy = queue.properties.application_policy
    return bool(policy) and state.folds is not None and state.folds.has_gate(policy)


def is_gated(state: PartitionState, app: Application, ask: Ask) -> bool:
    """A gate lets in what has room now, so nothing is kept but a node that an ask requires."""
    starts_alone = not (ask.spec.required_node or is_part_of_gang(app, ask.spec))
    return starts_alone and has_gate(state, app.queue)


def is_part_of_gang(app: Application, spec: AskSpec) -> bool:
    """Whether it starts with its gang, and not by itself."""
    is_held = app.queue.properties.gang_admission is GangAdmission.HOLD
    return bool(is_held and app.spec.is_gang and (spec.placeholder or spec.task_group))


def runtime_of(app: Application, spec: AskSpec) -> int:
    """Return for how long it says that it runs: by its own tag, else by its application's."""
    text = _declared(app, spec)
    runtime_ns = declared_ns(text) if text else None
    return NEVER_NS if runtime_ns is None else runtime_ns


def runtime_in_words(app: Application, spec: AskSpec) -> str:
    """Write what it declares; the tag is a text of others, so it may be no run time at all."""
    text = _declared(app, spec)
    if not text:
        return ""
    runtime_ns = declared_ns(text)
    return f"none: {runtime_fault(text)}" if runtime_ns is None else f"{runtime_ns / 1e9:g} s"


def runtime_fault(text: str) -> str:
    """Say why what is declared counts as none; the empty text if it counts, or nothing is."""
    if not text or declared_ns(text) is not None:
        return ""
    return f"{shown(text, 40)} in {TAG_RUNTIME} is no number of seconds from 0 to 292 years"


def _declared(app: Application, spec: AskSpec) -> str:
    return spec.tags.get(TAG_RUNTIME) or app.spec.tags.get(TAG_RUNTIME, "")


def job_of_ask(app: Application, ask: Ask) -> Job:
    spec = ask.spec
    return Job(
        id=f"{app.id}/{spec.key}",
        application_id=app.id,
        queue=app.queue.path,
        user=app.spec.user,
        group=app.group,
        # A copy: a policy that changes what it is given changes no ask.
        size=dict(spec.resource),
        count=spec.max_allocations,
        runtime_ns=runtime_of(app, spec),
        submitted_ns=ask.created_ns,
        priority=spec.priority,
    )


def job_of_gang(app: Application) -> Job:
    """Its members run as long as the longest of those that have come says."""
    asks = [ask for ask in app.asks.values() if ask.spec.placeholder]
    return Job(
        id=app.id,
        application_id=app.id,
        queue=app.queue.path,
        user=app.spec.user,
        group=app.group,
        size=dict(app.spec.placeholder_ask),
        runtime_ns=max((runtime_of(app, ask.spec) for ask in asks), default=NEVER_NS),
        submitted_ns=app.submitted_ns,
        priority=max((ask.spec.priority for ask in asks), default=0),
    )


def candidate_of(app: Application, allocations: Sequence[Allocation]) -> Candidate:
    """Return what a policy sees of what would be preempted together."""
    size: Resource = {}
    for allocation in allocations:
        charge(size, allocation.resource)
    ends = [it.allocated_ns + runtime_of(app, it.spec) for it in allocations]
    alone = f"{app.id}/{allocations[0].spec.key}"
    return Candidate(
        id=alone if len(allocations) == 1 else app.id,
        application_id=app.id,
        queue=app.queue.path,
        user=app.spec.user,
        group=app.group,
        size=size,
        count=len(allocations),
        priority=max(it.spec.priority for it in allocations),
        started_ns=min(it.allocated_ns for it in allocations),
        end_ns=min(NEVER_NS, max(ends)),
    )


# -- facts


def _size(state: PartitionState, _: f.Fact) -> Iterator[Change]:
    yield Sized(dict(state.capacity))


def _asks_added(state: PartitionState, fact: f.AskAdded | f.AsksAdded) -> Iterator[Change]:
    specs = (fact.spec,) if isinstance(fact, f.AskAdded) else fact.specs
    app = state.applications[specs[0].application_id]
    if not is_part_of_gang(app, specs[0]):
        for spec in specs:
            yield Arrived(job_of_ask(app, app.asks[spec.key]))
    elif specs[0].placeholder and awaits_admission(app):
        are_first = sum(ask.spec.placeholder for ask in app.asks.values()) == len(specs)
        if are_first:
            yield Arrived(job_of_gang(app))


def _ask_replaced(state: PartitionState, fact: f.AskReplaced) -> Iterator[Change]:
    app = state.applications[fact.spec.application_id]
    ask = app.asks[fact.spec.key]
    if ask.remaining and not ask.uuids and not is_part_of_gang(app, fact.spec):
        yield Left(job_of_ask(app, ask))
        yield Arrived(job_of_ask(app, ask))


def _ask_removed(state: PartitionState, fact: f.AskRemoved) -> Iterator[Change]:
    app = state.applications[fact.application_id]
    ask = app.asks.get(fact.key)
    if ask is None or not ask.uuids:
        yield Left(_named(app, f"{app.id}/{fact.key}", fact.resource))
    if app.spec.is_gang and not app.waiting_placeholders and not app.allocations:
        # It has started when it was admitted, whatever came of that.
        yield Ended(job_of_gang(app)) if app.is_admitted else Left(job_of_gang(app))


def _named(app: Application, id_: str, size: dict[str, int]) -> Job:
    return Job(
        id=id_,
        application_id=app.id,
        queue=app.queue.path,
        user=app.spec.user,
        group=app.group,
        size=size,
        submitted_ns=app.submitted_ns,
    )


def _committed(
    state: PartitionState, fact: f.AllocationCommitted | f.AllocationsCommitted
) -> Iterator[Change]:
    parts = (fact,) if isinstance(fact, f.AllocationCommitted) else fact.parts()
    for part in parts:
        app = state.applications[part.application_id]
        ask = app.asks[part.key]
        # Of a run that has several repeats of it all are placed by now: it starts with the first.
        if next(iter(ask.uuids)) == part.uuid and not is_part_of_gang(app, ask.spec):
            yield Started(job_of_ask(app, ask))


def _recovered(state: PartitionState, fact: f.AllocationRecovered) -> Iterator[Change]:
    app = state.applications[fact.spec.application_id]
    ask = app.asks.get(fact.spec.key)
    if ask is not None and not is_part_of_gang(app, ask.spec):
        yield Started(job_of_ask(app, ask))


def _admitted(state: PartitionState, fact: f.GangAdmitted) -> Iterator[Change]:
    yield Started(job_of_gang(state.applications[fact.application_id]))


def _lapsed(state: PartitionState, fact: f.GangLapsed) -> Iterator[Change]:
    job = job_of_gang(state.applications[fact.application_id])
    yield Ended(job)
    yield Arrived(job)


def _released(state: PartitionState, fact: f.AllocationReleased) -> Iterator[Change]:
    app = state.applications[fact.application_id]
    ask = app.asks.get(fact.key)
    if app.spec.is_gang and not app.allocations:
        yield Ended(_named(app, app.id, app.spec.placeholder_ask))
    if ask is None or not ask.uuids:
        yield Ended(_named(app, f"{app.id}/{fact.key}", fact.resource))
        if ask is not None and ask.remaining and not is_part_of_gang(app, ask.spec):
            # All that ran of it has ended, and the rest of it waits as before.
            yield Arrived(job_of_ask(app, ask))


def _swapped(state: PartitionState, fact: f.SwapCompleted) -> Iterator[Change]:
    """Where the gang is not one job, its placeholder ends, and its member starts in that place."""
    app = state.applications[fact.application_id]
    placeholder, ask = app.asks.get(fact.placeholder_key), app.asks[fact.key]
    if is_part_of_gang(app, ask.spec):
        return
    if placeholder is None or not placeholder.uuids:
        size = fact.placeholder_resource
        yield Ended(_named(app, f"{app.id}/{fact.placeholder_key}", size))
    if len(ask.uuids) == 1:
        yield Started(job_of_ask(app, ask))


def _all_of(state: PartitionState, now_ns: int) -> Iterator[tuple[Change, int]]:
    """Give a fold that begins later than the partition what it would have received."""
    yield Sized(dict(state.capacity)), 0
    started: list[tuple[int, Job]] = []
    waiting: list[tuple[int, Job]] = []
    for app in state.applications.values():
        gang = [it.allocated_ns for it in app.allocations.values() if is_part_of_gang(app, it.spec)]
        if gang or app.is_admitted:
            started.append((min(gang, default=now_ns), job_of_gang(app)))
        elif awaits_admission(app):
            waiting.append((app.serial, job_of_gang(app)))
        for ask in app.asks.values():
            if is_part_of_gang(app, ask.spec):
                continue
            if ask.uuids:
                first = min(app.allocations[uuid].allocated_ns for uuid in ask.uuids)
                started.append((first, job_of_ask(app, ask)))
            elif ask.remaining:
                waiting.append((ask.sequence, job_of_ask(app, ask)))
    for at_ns, job in sorted(started, key=lambda it: it[0]):
        yield Started(job), at_ns
    for _, job in sorted(waiting, key=lambda it: it[1].submitted_ns):
        yield Arrived(job), now_ns


_READERS: Final[dict[type, Any]] = {
    f.NodeAdded: _size,
    f.NodeResized: _size,
    f.NodeRemoved: _size,
    f.AskAdded: _asks_added,
    f.AsksAdded: _asks_added,
    f.AskReplaced: _ask_replaced,
    f.AskRemoved: _ask_removed,
    f.AllocationCommitted: _committed,
    f.AllocationsCommitted: _committed,
    f.AllocationRecovered: _recovered,
    f.GangAdmitted: _admitted,
    f.GangLapsed: _lapsed,
    f.AllocationReleased: _released,
    f.SwapCompleted: _swapped,
}
