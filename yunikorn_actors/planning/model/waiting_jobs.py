"""Waiting jobs: what waits in a leaf with a gate, as jobs in their order.

A gate may be asked about all that waits each time something has happened, and sorting all of it
each time would be quadratic. The leaf notes which asks and applications may have another key
(`QueueView.changed`), and only those find their place anew.
"""

from collections.abc import Hashable, Iterable, Iterator

from yunikorn_actors.planning.model.sorted_collections import NO_PRIORITY, OrderedItems, Priorities
from yunikorn_actors.planning.model.views import AppView, AskView, QueueView, key_of
from yunikorn_actors.policies.folds import is_part_of_gang, job_of_ask, job_of_gang
from yunikorn_actors.policies.inputs import Job
from yunikorn_actors.values.resource import Resource

Subject = AskView | AppView
"""A single ask, or the application whose gang awaits its admission."""
_GANG: tuple[object, ...] = (0,)
"""Before the single asks of its application."""


class WaitingJob:
    __slots__ = ("at_once", "job", "order", "place", "size", "subject")

    def __init__(self, subject: Subject, key: tuple[object, ...]) -> None:
        self.subject = subject
        self.place = 0
        """Among all of its leaf, when a pass began."""
        self.job: Job
        self.at_once: Resource
        """What starts together: all of a gang, and one of the repeats of an ask."""
        self.size: Hashable
        """Equal for all jobs that fit into the same room."""
        self.order: tuple[object, ...]
        if isinstance(subject, AskView):
            self.job = job_of_ask(subject.app.app, subject.ask)
            self.at_once, self.size = subject.resource, subject.shape.key
            self.order = (key, (1, subject.order))
        else:
            self.job = job_of_gang(subject.app)
            self.at_once = subject.app.spec.placeholder_ask
            self.size = (*sorted(self.at_once.items()),)
            self.order = (key, _GANG)


class _Application:
    """What waits of one application."""

    def __init__(self) -> None:
        self.jobs: dict[Subject, WaitingJob] = {}
        self.key: tuple[object, ...] = ()
        self.ranks: dict[AskView, int] = {}
        """The priority of each ask that waits, members of gangs included."""
        self.priorities = Priorities()


class WaitingJobs:
    def __init__(self, leaf: QueueView) -> None:
        self._leaf = leaf
        self.decider = leaf.decider
        """By another one the order is another."""
        self._apps: dict[AppView, _Application] = {}
        self.in_order: OrderedItems[WaitingJob] = OrderedItems()
        self.by_size: dict[Hashable, OrderedItems[WaitingJob]] = {}
        self._look_at(leaf.members.values())

    def refresh(self) -> None:
        """Bring the order up to date with what was noted."""
        changed = self._leaf.changed
        assert changed is not None
        # The policy's own state ranks them: all keys may be others.
        if self.decider.goes_by_state:
            changed.update(dict.fromkeys(self._apps))
        self._look_at(changed)
        changed.clear()

    def unchanged(self) -> Iterator[tuple[AppView, dict[Subject, Job]]]:
        """Yield what is kept of each application of which nothing was noted since."""
        changed = dict.fromkeys(map(_app_of, self._leaf.changed or ()))
        for app in [*self._apps, *self._leaf.members.values()]:
            if app not in changed:
                known = self._apps.get(app)
                yield app, {it: job.job for it, job in known.jobs.items()} if known else {}

    # By application: its key is read once for all its asks.
    def _look_at(self, changed: Iterable[Subject]) -> None:
        asks: dict[AppView, list[AskView]] = {}
        for it in changed:
            mine = asks.setdefault(_app_of(it), [])
            if isinstance(it, AskView):
                mine.append(it)
        for app, mine in asks.items():
            self._look_at_app(app, mine)

    def _look_at_app(self, app: AppView, asks: Iterable[AskView]) -> None:
        known = self._apps.pop(app, None)
        # It has gone, or takes no part: all its jobs go.
        if self._leaf.members.get(app.app.serial) is not app or not app.is_schedulable:
            self._drop(known.jobs.values() if known else ())
            return
        if known is None:
            known, asks = _Application(), app.asks.values()
        wanted = dict.fromkeys(known.jobs)
        for ask in asks:
            if self._waits(known, ask):
                wanted[ask] = None
            else:
                wanted.pop(ask, None)
        wanted.pop(app, None)
        if app.asks and app.awaiting_gang is not None:
            wanted[app] = None
        # Of what has nothing that waits no policy is asked for a key.
        key = key_of(app, known.priorities.highest) if wanted else ()
        # Under another key all its jobs stand elsewhere.
        is_moved, known.key = key != known.key, key
        # What was noted is another job by now, and under another key all stand elsewhere.
        stay = {} if is_moved else {it: job for it, job in known.jobs.items() if it in wanted}
        stay.pop(app, None)
        for noted in asks:
            stay.pop(noted, None)
        self._drop(job for it, job in known.jobs.items() if it not in stay)
        known.jobs = stay
        for it in wanted:
            if it not in stay:
                known.jobs[it] = self._add(WaitingJob(it, key))
        if known.jobs or known.ranks:
            self._apps[app] = known

    def _waits(self, known: _Application, ask: AskView) -> bool:
        """Whether the ask comes up by itself; a waiting member counts only for the rank."""
        # Also members of gangs count for the rank of their application.
        waits = bool(ask.waiting) and not ask.gone
        before, now = known.ranks.pop(ask, NO_PRIORITY), NO_PRIORITY
        if waits:
            now = known.ranks[ask] = ask.order.priority
        known.priorities.change(before, now)
        return waits and not is_part_of_gang(ask.app.app, ask.ask.spec)

    def _add(self, job: WaitingJob) -> WaitingJob:
        self.in_order.add(job)
        self.by_size.setdefault(job.size, OrderedItems()).add(job)
        return job

    def _drop(self, jobs: Iterable[WaitingJob]) -> None:
        for job in jobs:
            self.in_order.remove(job)
            alike = self.by_size[job.size]
            alike.remove(job)
            if not alike:
                del self.by_size[job.size]


def _app_of(subject: Subject) -> AppView:
    return subject.app if isinstance(subject, AskView) else subject
