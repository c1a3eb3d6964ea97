"""Gates: leaves whose policy decides who may start.

Such a leaf has one candidate at a time: of all that waits in it nothing else takes part. In a pass
the jobs of the leaf come up in their order. One that has no room is held; for one that has room,
the gate is asked. An ask that it lets in becomes the candidate, and is placed or refused as any
other ask, at the turn of its queue; then the next comes up. Where another leaf has taken room
before that turn, the gate is asked again. Whatever happens makes all passes begin anew.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from typing import Protocol

from yunikorn_actors.planning.model.partition_model import Model
from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.tree import rekey
from yunikorn_actors.planning.model.views import AppView, AskView, QueueView
from yunikorn_actors.planning.model.waiting_jobs import Subject, WaitingJob, WaitingJobs
from yunikorn_actors.planning.stages.gangs import Admitter
from yunikorn_actors.planning.stages.stage import OpenProposals
from yunikorn_actors.policies.folds import job_of_ask, job_of_gang, runtime_of
from yunikorn_actors.policies.inputs import Hold, Job, Running
from yunikorn_actors.policies.profile import Profile, profile_of
from yunikorn_actors.state.proposals import Proposal
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.resource import INT64_MAX, Resource, add, charge, fits_in


class Placing(Protocol):
    """Who places asks, and knows whether one could be placed now."""

    def has_room(self, ask: AskView) -> bool: ...

    def is_blocked(self, app: AppView) -> bool: ...


class Gatekeeper:
    """The passes of all gated leaves."""

    placing: Placing

    def __init__(self, model: Model, open_proposals: OpenProposals, admitter: Admitter) -> None:
        self._model = model
        self._findings = open_proposals.findings
        self._admitter = admitter
        self.passes: dict[QueueView, Pass] = {}
        self.waiting: dict[QueueView, WaitingJobs] = {}
        self.is_stale = True
        self.due_ns = NEVER_NS
        """When a gate may say yes though nothing has happened."""

    @property
    def has_work(self) -> bool:
        gated = self._model.deciders.gated
        if not gated:
            # The last gated leaf may have gone: its pass has still to be ended.
            return bool(self.passes)
        return self.is_stale and any(leaf.members for leaf in gated)

    def time_came(self, now_ns: int) -> None:
        self.is_stale |= self.due_ns <= now_ns

    def plan(self, now_ns: int, room: int) -> list[Proposal]:
        """Let the first of each gated leaf come up, unless the passes of the last plan hold on."""
        # Without gated leaves the passes of a former policy end here.
        gated = self._model.deciders.gated
        is_due = self.is_stale or self.due_ns <= now_ns or not gated
        if not (gated or self.passes) or room <= 0 or not is_due:
            return []
        self.is_stale, self.due_ns = False, NEVER_NS
        # Nothing that an old pass let in takes part in the new one.
        for old in self.passes.values():
            self._shut(old)
        if self._model.requeue.places:
            # One that may start now and is not woken could not be let in.
            self._model.participants.top_up()
        self.waiting = {leaf: self._waiting_in(leaf) for leaf in gated}
        self.passes = {it: Pass(self._model, jobs, it, now_ns) for it, jobs in self.waiting.items()}
        for leaf, each in self.passes.items():
            self._next(each)
            # Who stands first then may be another one, who has room.
            if leaf.decider.step_ns and self.waiting[leaf].in_order:
                self.due_ns = min(self.due_ns, leaf.clock_ns + leaf.decider.step_ns)
        return []

    def _waiting_in(self, leaf: QueueView) -> WaitingJobs:
        """Under another policy the order is made anew."""
        waiting = self.waiting.get(leaf)
        if waiting is None or waiting.decider is not leaf.decider:
            waiting = WaitingJobs(leaf)
        waiting.refresh()
        return waiting

    def confirms(self, leaf: QueueView) -> bool:
        """Ask the gate again if others have taken room since; False if the candidate is held."""
        # No pass, no candidate, or nothing taken since: the answer of the gate still holds.
        of_leaf = self.passes.get(leaf)
        if of_leaf is None or of_leaf.candidate is None or not of_leaf.is_outdated:
            return True
        of_leaf.is_outdated = False
        candidate = of_leaf.candidate
        hold = of_leaf.ask_gate(candidate.job)
        if hold is None:
            return True
        # Shut before the next comes up: a leaf has one candidate at a time.
        self._shut(of_leaf)
        self._hold(of_leaf, candidate, hold)
        self._next(of_leaf)
        return False

    def went(self, leaf: QueueView, ask: AskView, *, is_placed: bool) -> None:
        """An ask was tried: if it was the candidate, the next comes up."""
        # What runs on a node that takes no other work is not room for anybody else.
        if is_placed and not self._is_beside_the_rest(ask):
            self._charge_others(leaf, ask)
        # Before the others are looked at: this leaf may have a new candidate by then.
        self._end_turn_of(leaf, ask, is_placed=is_placed)
        if not is_placed:
            self._end_refused()

    def _end_refused(self) -> None:
        """Refusing one closes the lanes of its like in other leaves: a candidate there went too.

        One that stayed would still take part, untried, and could have a node kept.
        """
        for of_leaf in self.passes.values():
            if of_leaf.candidate is not None and not _is_tried(of_leaf.candidate.subject):
                self._shut(of_leaf)
                self._next(of_leaf)

    def _end_turn_of(self, leaf: QueueView, ask: AskView, *, is_placed: bool) -> None:
        of_leaf = self.passes.get(leaf)
        if of_leaf is None or of_leaf.candidate is None:
            return
        candidate = of_leaf.candidate
        subject = candidate.subject
        is_turn = ask.app is subject and ask.shape is self._model.shapes.turns
        if not is_turn and ask is not subject:
            return
        self._shut(of_leaf)
        if is_placed:
            if not self._is_beside_the_rest(subject):
                of_leaf.start(candidate)
            # Several repeats: it comes up again at its place, before those behind it.
            if isinstance(subject, AskView) and subject.waiting:
                of_leaf.come_up_again(candidate)
            else:
                of_leaf.started.add(candidate.place)
        self._next(of_leaf)

    def _charge_others(self, leaf: QueueView, ask: AskView) -> None:
        """What one leaf takes is not there for the gates of the others."""
        # Hardly ever is more than one leaf gated, and then nothing has to be charged.
        others = [each for each in self.passes.values() if each.leaf is not leaf]
        if not others:
            return
        app, is_turn = ask.app.app, ask.shape is self._model.shapes.turns
        job = job_of_gang(app) if is_turn else job_of_ask(app, ask.ask)
        for each in others:
            each.take(leaf, job.total if is_turn else ask.resource, each.end_of(job))
            # Its candidate is asked about again when its turn comes, not now.
            each.is_outdated = True

    def _next(self, of_leaf: "Pass") -> None:
        """Let jobs come up until one is let in."""
        while (job := of_leaf.come_up(self._may_fit)) is not None:
            # One without room is held without asking: the gate decides only among those that fit.
            if not self._has_room(of_leaf, job.subject):
                continue
            hold = of_leaf.ask_gate(job.job)
            if hold is not None:
                self._hold(of_leaf, job, hold)
            elif self._let_in(job.subject):
                of_leaf.candidate, of_leaf.is_outdated = job, False
                return

    def _may_fit(self, of_leaf: "Pass", job: WaitingJob) -> bool:
        """Whether the sums have room for the job, and so for every job of its size."""
        return of_leaf.fits(job) or self._is_beside_the_rest(job.subject)

    def _has_room(self, of_leaf: "Pass", subject: Subject) -> bool:
        app = subject.app if isinstance(subject, AskView) else subject
        # The same proposal would be refused again, or its application may not start: it is passed
        # over.
        if subject in self._model.set_aside or self.placing.is_blocked(app):
            return False
        if isinstance(subject, AskView):
            return self.placing.has_room(subject)
        return self._admitter.may_admit(app) and self._holds_gang(of_leaf, app)

    def _is_beside_the_rest(self, subject: Subject) -> bool:
        """Whether it requires a node that takes no other work, so that all else is no matter."""
        if not isinstance(subject, AskView):
            return False
        node = self._model.nodes.views.get(subject.shape.required_node)
        return node is not None and not node.is_open

    def _holds_gang(self, of_leaf: "Pass", app: AppView) -> bool:
        """Whether the nodes have room for all placeholders now, those of one size after another."""
        # By shape: those that are alike are counted together.
        left = Counter[Shape]()
        for ask in app.asks.values():
            if ask.is_placeholder:
                left[ask.shape] += ask.waiting
        if len(left) == 1:
            # Most gangs have one size, and many that wait have the same.
            ((shape, repeats),) = left.items()
            return repeats <= of_leaf.room_for(shape)
        # Not the best packing there is: some gang may be held although it would fit.
        taken: dict[str, Resource] = {}
        for shape in left:
            for node in self._model.nodes.views.values():
                if left[shape] <= 0:
                    break
                if not node.serves(shape):
                    continue
                room = {k: n - taken.get(node.id, {}).get(k, 0) for k, n in node.free.items()}
                here = min([left[shape], *(room.get(k, 0) // n for k, n in shape.wanted)])
                if here > 0:
                    left[shape] -= here
                    used = {kind: here * quantity for kind, quantity in shape.wanted}
                    taken[node.id] = add(taken.get(node.id), used)
        return not any(left.values())

    def _let_in(self, subject: Subject) -> bool:
        """Let it take part; say whether it will be tried."""
        model = self._model
        if isinstance(subject, AppView):
            model.gangs.give_turn(subject)
            return _is_tried(subject)
        self._take_part(subject, is_let_in=True)
        if _is_tried(subject):
            return True
        # It was not tried after all: it must not stay open for others to find.
        self._take_part(subject, is_let_in=False)
        return False

    def _take_part(self, ask: AskView, *, is_let_in: bool) -> None:
        """Whether it does changes what its queue shows, in the middle of a plan."""
        ask.is_let_in = is_let_in
        # A view that is gone has no lane to come back to.
        if not ask.gone:
            self._model.asks.resync(ask)
            rekey(ask.app.leaf)

    def _shut(self, of_leaf: "Pass") -> None:
        """What was let in takes part no more, placed or not."""
        # Taken away first: ending the turn must not find it as a candidate again.
        candidate, of_leaf.candidate = of_leaf.candidate, None
        if candidate is None:
            return
        subject = candidate.subject
        if isinstance(subject, AppView):
            self._model.gangs.end_turn(subject)
        else:
            self._take_part(subject, is_let_in=False)

    def _hold(self, of_leaf: "Pass", job: WaitingJob, hold: Hold) -> None:
        of_leaf.leaf.holds.add(job.subject, hold)
        # A policy that holds for ever names no time, and then only a change helps.
        if hold.until_ns > of_leaf.now_ns:
            self.due_ns = min(self.due_ns, hold.until_ns)
        self._findings.note_held(job.subject, hold.reason)
        # Nobody behind it comes up in this pass: backfilling is over.
        if hold.ends_pass:
            of_leaf.end()
            of_leaf.leaf.holds.add_behind(hold, of_leaf.behind(job))
            self._findings.note_all_held(of_leaf.behind(job), hold.reason)


class Pass:
    """One pass over the jobs of a leaf; the gate sees it as its pool.

    In a pass room only shrinks. So of a size that does not fit no job comes up any more, however
    many of them wait.
    """

    def __init__(self, model: Model, jobs: WaitingJobs, leaf: QueueView, now_ns: int) -> None:
        self._model = model
        self.leaf = leaf
        self.now_ns = now_ns
        self.gate = leaf.decider.gate_of_pass()
        self.queue = leaf.queue.path
        self.candidate: WaitingJob | None = None
        self.is_outdated = False
        """Another leaf has taken room since the gate let the candidate in."""
        self.started: set[int] = set()
        """Places of those that wait no more."""
        leaf.holds.clear()
        self._jobs = [*jobs.in_order]
        # The place in the order, kept with the job: a heap of sizes compares it.
        for place, job in enumerate(self._jobs):
            job.place = place
        self._rest: list[tuple[int, WaitingJob, Iterator[WaitingJob]]] = []
        """A heap: of each size the first that has not come up, and those behind it."""
        for alike in jobs.by_size.values():
            behind = iter(alike)
            first = next(behind)
            self._rest.append((first.place, first, behind))
        heapify(self._rest)
        self._at = 0
        """All places before this one have come up, or have no room."""
        self._held: list[Job] = []
        self._held_to = 0
        self._free = self._free_now() if self._rest else {}
        self._room: dict[Shape, int] = {}
        self._running: list[Running] | None = None
        self._profile: Profile | None = None

    def come_up(self, may_fit: Callable[["Pass", WaitingJob], bool]) -> WaitingJob | None:
        """Return the next job that may fit, in their order."""
        while self._rest:
            _, job, behind = self._rest[0]
            # None of this size fits, as room only shrinks in a pass: the whole size is passed over.
            if not may_fit(self, job):
                heappop(self._rest)
                continue
            following = next(behind, None)
            if following is None:
                heappop(self._rest)
            else:
                heapreplace(self._rest, (following.place, following, behind))
            self._at = job.place
            return job
        self._at = len(self._jobs)
        return None

    def come_up_again(self, job: WaitingJob) -> None:
        """A repeat of it has started, and others wait."""
        # At its own place, and without those behind it: they have an entry already.
        heappush(self._rest, (job.place, job, iter(())))

    def end(self) -> None:
        """Let nobody come up any more."""
        self._rest.clear()

    def behind(self, job: WaitingJob) -> Iterator[Subject]:
        return (it.subject for it in islice(self._jobs, job.place + 1, None))

    def ask_gate(self, job: Job) -> Hold | None:
        gate = self.gate
        return None if gate is None else self.leaf.decider.ask_gate(gate, job, self)

    # -- what the gate may ask

    @property
    def waiting(self) -> list[Job]:
        return [it.job for it in self._jobs]

    @property
    def held(self) -> list[Job]:
        # Only what came up since the last question: a pass may ask about each of its jobs.
        for place in range(self._held_to, self._at):
            if place not in self.started:
                self._held.append(self._jobs[place].job)
        self._held_to = max(self._held_to, self._at)
        return self._held

    @property
    def running(self) -> list[Running]:
        if self._running is None:
            self._running = [Running(size, end_ns) for _, size, end_ns in self._work()]
        return self._running

    def end_of(self, job: Job) -> int:
        return job.end_ns(self.now_ns)

    def earliest(self, job: Job) -> int:
        return self._future().earliest(self._need(self.leaf, job.total))

    def fits_beside(self, job: Job, other: Job, at_ns: int) -> bool:
        both = self._need(self.leaf, add(job.total, other.total))
        return fits_in(both, self._future().free_at(at_ns))

    # -- amounts: of the cluster by their types, of the queues of the path by path and type

    def fits(self, job: WaitingJob) -> bool:
        return fits_in(self._need(self.leaf, job.at_once), self._free)

    def start(self, job: WaitingJob) -> None:
        self.take(self.leaf, job.at_once, self.end_of(job.job))

    def take(self, leaf: QueueView, size: Resource, end_ns: int) -> None:
        """Something starts now, in this leaf or in another one."""
        # Room for shapes was counted before this: it is counted anew when it is asked for.
        self._room.clear()
        need = self._need(leaf, size)
        charge(self._free, {kind: -quantity for kind, quantity in need.items()})
        # Only if it was worked out: else it is made with this one included.
        if self._running is not None:
            self._running.append(Running(size, end_ns))
        if self._profile is not None:
            self._profile.take(self.now_ns, end_ns, need)

    def room_for(self, shape: Shape) -> int:
        """Return how many asks of this shape the nodes have room for now."""
        room = self._room.get(shape)
        if room is None:
            nodes = (it.free for it in self._model.nodes.views.values() if it.serves(shape))
            room = self._room[shape] = sum(
                # The least of all types; a shape that wants nothing fits without end.
                min((free.get(kind, 0) // n for kind, n in shape.wanted), default=INT64_MAX)
                for free in nodes
            )
        return room

    def _future(self) -> Profile:
        if self._profile is None:
            work = ((self._need(leaf, size), end_ns) for leaf, size, end_ns in self._work())
            self._profile = profile_of(self._free, self.now_ns, work)
        return self._profile

    def _need(self, leaf: QueueView, size: Resource) -> Resource:
        need = dict(size)
        # The root's limit is the size of the cluster, which the nodes have already.
        for level in self.leaf.lineage[:-1]:
            if level.limit is not None and level in leaf.lineage:
                here = [kind for kind in level.limit if kind in size]
                need.update((f"{level.queue.path} {kind}", size[kind]) for kind in here)
        return need

    def _free_now(self) -> Resource:
        free: Resource = {}
        for node in self._model.nodes.views.values():
            if node.is_open:
                # What is missing on a node that is too full is taken from no other.
                charge(free, {kind: max(0, quantity) for kind, quantity in node.free.items()})
        for level in self.leaf.lineage[:-1]:
            for kind, size in (level.limit or {}).items():
                free[f"{level.queue.path} {kind}"] = size - level.used.get(kind, 0)
        return free

    def _work(self) -> Iterator[tuple[QueueView, Resource, int]]:
        """Yield what runs in the partition, and what is on its way, with its end."""
        for app in self._model.apps.values():
            for it in app.app.allocations.values():
                runtime_ns = runtime_of(app.app, it.spec)
                yield app.leaf, it.resource, min(NEVER_NS, it.allocated_ns + runtime_ns)
        for flight in self._model.flights.placements.values():
            app = flight.ask.app
            runtime_ns = runtime_of(app.app, flight.ask.ask.spec)
            yield app.leaf, flight.resource, min(NEVER_NS, self.now_ns + runtime_ns)


# A view without an entry, or in a closed lane, would be a candidate that never comes up.
def _is_tried(subject: Subject) -> bool:
    """Whether a participant will get its turn."""
    if not isinstance(subject, AskView):
        return subject.turn is not None and subject.entry is not None
    lane = subject.app.leaf.lanes.get((subject.shape, subject.app.owner))
    return subject.app.entry is not None and lane is not None and lane.is_open
