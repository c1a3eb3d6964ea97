"""A partition written fact by fact, with a planner that watches.

After every fact the whole state is derived again and compared, and so is the planner's view, so a
test that only writes facts has already tested the books.
"""

from typing import Any

from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.checks.state_invariants import violations
from yunikorn_actors.config import parse_config
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.applications import (
    Application,
    ApplicationEvent,
    ApplicationSpec,
    ApplicationState,
)
from yunikorn_actors.state.facts import apply
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.proposals import Allocate
from yunikorn_actors.state.queues import QueueSpec, QueueState
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource

_NEVER_NS = 10**18
APP = "app-1"
LEAF = "root.default"
STATEAWARE = {"application.sort.policy": "stateaware"}

Decision = tuple[str, str, str]
"""Application, ask, node."""


class Written:
    def __init__(self, *leaves: str, reservation_delay_ns: int = _NEVER_NS) -> None:
        self.state = PartitionState("[rm-1]default")
        self.planner = Planner(self.state, reservation_delay_ns=reservation_delay_ns)
        self.now_ns = 0
        self._number = 0
        self.queue("root", leaf=False)
        for leaf in leaves or (LEAF,):
            self.queue(leaf)

    def record(self, *facts: f.Fact) -> None:
        """Write facts that belong together, as one handler would."""
        for fact in facts:
            self.now_ns += 1
            self._write(fact)
        for app in self.state.applications.values():
            self._keep_time(app)
        assert [] == violations(self.state)
        assert [] == audit(self.planner)

    def _write(self, fact: f.Fact) -> None:
        apply(self.state, fact)
        self.planner.observe(fact)

    def _keep_time(self, app: Application) -> None:
        """What holds room for a gang has a timer, which Context arms in the same handler."""
        committed = app.serial in self.state.admitted
        wanted = {
            "placeholder": app.has_placeholders,
            "commitment": committed and not app.has_placeholders,
        }
        for kind, is_wanted in wanted.items():
            if is_wanted and kind not in app.timers:
                armed = f.TimerArmed(application_id=app.id, kind=kind, generation=0, due_ns=0)
                self._write(armed)
            elif not is_wanted and kind in app.timers:
                self._write(f.TimerCancelled(application_id=app.id, kind=kind))

    def _next(self) -> int:
        self._number += 1
        return self._number

    # -- configuration

    def node_order(self, policy: str) -> None:
        text = (
            f"partitions: [{{name: default, nodesortpolicy: {{type: {policy}}}, "
            "queues: [{name: root}]}]"
        )
        self.record(f.PartitionConfigured(config=parse_config(text).partitions[0]))

    def queue(self, path: str, *, leaf: bool = True, **spec: Any) -> None:
        made = QueueSpec(leaf=leaf, **spec)
        self.record(f.QueueAdded(path=path, spec=made, at_ns=self.now_ns))

    def reconfigure(self, path: str, **spec: Any) -> None:
        old = self.state.queues[path].spec
        new = QueueSpec(leaf=old.leaf, **spec)
        self.record(f.QueueReconfigured(path=path, old_spec=old, spec=new, at_ns=self.now_ns))

    def drain_queue(self, path: str) -> None:
        self.record(f.QueueStateChanged(path=path, state=QueueState.DRAINING, at_ns=self.now_ns))

    def remove_queue(self, path: str) -> None:
        self.record(f.QueueRemoved(path=path, managed=True, at_ns=self.now_ns))

    # -- nodes

    def node(self, name: str, occupied: Resource | None = None, **capacity: int) -> None:
        self.record(self.node_added(name, occupied, **capacity))

    def node_added(
        self, name: str, occupied: Resource | None = None, **capacity: int
    ) -> f.NodeAdded:
        return f.NodeAdded(
            node_id=name,
            capacity=capacity,
            occupied=occupied or {},
            attributes={},
            drained=False,
            ready=True,
            at_ns=self.now_ns,
        )

    def resize_node(self, name: str, occupied: Resource | None = None, **capacity: int) -> None:
        node = self.state.nodes[name]
        self.record(
            f.NodeResized(
                node_id=name,
                old_capacity=node.capacity,
                old_occupied=node.occupied_reported,
                capacity=capacity,
                occupied=node.occupied_reported if occupied is None else occupied,
                at_ns=self.now_ns,
            )
        )

    def schedule(self, name: str, *, drained: bool = False, ready: bool = True) -> None:
        node = self.state.nodes[name]
        self.record(
            f.NodeScheduleChanged(
                node_id=name,
                was_drained=node.drained,
                was_ready=node.ready,
                drained=drained,
                ready=ready,
                at_ns=self.now_ns,
            )
        )

    def remove_node(self, name: str) -> None:
        for allocation in tuple(self.state.nodes[name].allocations.values()):
            self.release(allocation.uuid, allocation.spec.application_id)
        self.record(f.NodeRemoved(node_id=name, at_ns=self.now_ns))

    def foreign(self, key: str, node: str, **amount: int) -> None:
        known = self.state.foreign.get(key)
        if known is not None and known.node_id != node:
            self.remove_foreign(key)
        self.record(
            f.ForeignAllocationPut(key=key, node_id=node, resource=amount, at_ns=self.now_ns)
        )

    def remove_foreign(self, key: str) -> None:
        known = self.state.foreign[key]
        self.record(
            f.ForeignAllocationRemoved(
                key=key, node_id=known.node_id, resource=known.resource, at_ns=self.now_ns
            )
        )

    # -- applications

    def application(self, name: str = APP) -> Application:
        return self.state.applications[name]

    def add(self, *names: str, queue: str = LEAF, user: str = "bob", **spec: Any) -> None:
        """Add applications and let them be Accepted."""
        for name in names:
            made = ApplicationSpec(application_id=name, user=user, **spec)
            added = f.ApplicationAdded(
                spec=made, queue=queue, serial=self._next(), at_ns=self.now_ns
            )
            self.record(added)
            self.move(name, ApplicationState.ACCEPTED)

    def move(self, name: str, state: ApplicationState) -> None:
        """Change the state; its timer comes and goes with it."""
        app = self.application(name)
        facts: list[f.Fact] = [
            f.TimerCancelled(application_id=name, kind=kind) for kind in app.timers
        ]
        facts.append(
            f.ApplicationStateChanged(
                application_id=name,
                serial=app.serial,
                queue=app.queue.path,
                state=state,
                event=ApplicationEvent.RUN,
                message="",
                at_ns=self.now_ns,
            )
        )
        if state in {ApplicationState.COMPLETING, ApplicationState.STARTING}:
            number, due_ns = self._next(), self.now_ns + 30
            facts.append(
                f.TimerArmed(application_id=name, kind="state", generation=number, due_ns=due_ns)
            )
        self.record(*facts)

    def remove(self, name: str) -> None:
        app = self.application(name)
        for key in [key for key, ask in app.asks.items() if ask.remaining]:
            self.withdraw(key, name)
        for uuid in tuple(app.allocations):
            self.release(uuid, name)
        self.record(
            f.ApplicationRemoved(
                application_id=name, serial=app.serial, queue=app.queue.path, at_ns=self.now_ns
            )
        )

    def link(self, name: str, group: str) -> None:
        """Count the application in the group from now on."""
        app = self.application(name)
        self.record(
            f.ApplicationLinked(
                application_id=name,
                serial=app.serial,
                old_group=app.counted_in,
                group=group,
                at_ns=self.now_ns,
            )
        )

    # -- asks and allocations

    def ask(
        self, key: str, app: str = APP, *, repeats: int = 1, created_ns: int = 0, **parts: Any
    ) -> None:
        spec = _spec(app, key, parts, max_allocations=repeats)
        self.record(
            f.AskAdded(
                spec=spec,
                created_ns=created_ns or self.now_ns,
                sequence=self._next(),
                at_ns=self.now_ns,
            )
        )

    def replace(self, key: str, app: str = APP, *, repeats: int = 1, **parts: Any) -> None:
        spec = _spec(app, key, parts, max_allocations=repeats)
        self.record(f.AskReplaced(spec=spec, at_ns=self.now_ns))

    def withdraw(self, key: str, app: str = APP) -> None:
        self.record(
            f.AskRemoved(
                application_id=app,
                key=key,
                resource=self.application(app).asks[key].spec.resource,
                type=TerminationType.STOPPED_BY_RM,
                at_ns=self.now_ns,
            )
        )

    def allocate(
        self, key: str, node: str, app: str = APP, *, proposal_id: int = NO_PROPOSAL
    ) -> str:
        """Commit one repeat of an ask and return the UUID."""
        owner = self.application(app)
        uuid = f"u-{self._next()}"
        self.record(
            f.AllocationCommitted(
                application_id=app,
                queue=owner.queue.path,
                user=owner.spec.user,
                group=owner.group,
                key=key,
                uuid=uuid,
                node_id=node,
                resource=owner.asks[key].spec.resource,
                at_ns=self.now_ns,
                proposal_id=proposal_id,
            )
        )
        return uuid

    def plan(self, limit: int = 10_000) -> list[Allocate]:
        proposals = self.planner.plan(limit, self.now_ns)
        return [proposal for proposal in proposals if isinstance(proposal, Allocate)]

    def decide(self) -> list[Decision]:
        """Plan to the end, take note, and take everything back."""
        proposals = self.plan()
        for proposal in proposals:
            self.planner.reject(proposal.proposal_id)
        assert [] == audit(self.planner)
        return [(p.application_id, p.key, p.node_id) for p in proposals]

    def reserve(self, key: str, node: str, app: str = APP, *, promises: bool = False) -> None:
        required = bool(self.application(app).asks[key].spec.required_node)
        self.record(
            f.ReservationMade(
                application_id=app,
                key=key,
                node_id=node,
                required=required,
                resource=self.state.applications[app].asks[key].spec.resource,
                by_preemption=promises,
                at_ns=self.now_ns,
            )
        )

    def drop(self, key: str, node: str, app: str = APP) -> None:
        """Give a node free that is kept."""
        self.record(
            f.ReservationDropped(
                application_id=app,
                key=key,
                node_id=node,
                reason="",
                resource=self.state.applications[app].asks[key].spec.resource,
                at_ns=self.now_ns,
            )
        )

    def commit(self, proposal: Allocate) -> str:
        return self.allocate(
            proposal.key,
            proposal.node_id,
            proposal.application_id,
            proposal_id=proposal.proposal_id,
        )

    def recover(self, key: str, node: str, app: str = APP, **parts: Any) -> str:
        owner = self.application(app)
        uuid = f"u-{self._next()}"
        self.record(
            f.AllocationRecovered(
                spec=_spec(app, key, parts),
                queue=owner.queue.path,
                user=owner.spec.user,
                group=owner.group,
                uuid=uuid,
                node_id=node,
                created_ns=self.now_ns,
                sequence=self._next(),
                at_ns=self.now_ns,
            )
        )
        return uuid

    def resize(self, uuid: str, app: str = APP, **amount: int) -> None:
        owner = self.application(app)
        known = owner.allocations[uuid]
        self.record(
            f.AllocationResized(
                application_id=app,
                queue=owner.queue.path,
                user=owner.spec.user,
                group=owner.group,
                key=known.spec.key,
                uuid=uuid,
                node_id=known.node_id,
                old_resource=known.resource,
                resource=amount,
                at_ns=self.now_ns,
            )
        )

    def release(self, uuid: str, app: str = APP) -> None:
        owner = self.application(app)
        known = owner.allocations[uuid]
        self.record(
            f.AllocationReleased(
                application_id=app,
                queue=owner.queue.path,
                user=owner.spec.user,
                group=owner.group,
                key=known.spec.key,
                uuid=uuid,
                node_id=known.node_id,
                resource=known.resource,
                type=TerminationType.STOPPED_BY_RM,
                placeholder=known.spec.placeholder,
                at_ns=self.now_ns,
            )
        )

    def ask_back(self, uuid: str, app: str = APP) -> None:
        self.record(self._asked_back(uuid, app, TerminationType.TIMEOUT))

    def _asked_back(self, uuid: str, app: str, type_: TerminationType) -> f.ReleaseRequested:
        return f.ReleaseRequested(
            application_id=app,
            key=self.application(app).allocations[uuid].spec.key,
            uuid=uuid,
            type=type_,
            message="",
            at_ns=self.now_ns,
        )

    # -- gangs

    def admit(self, app: str) -> None:
        owner = self.application(app)
        self.record(
            f.GangAdmitted(
                application_id=app,
                serial=owner.serial,
                queue=owner.queue.path,
                commitment=owner.spec.placeholder_ask,
                at_ns=self.now_ns,
            )
        )

    def lapse(self, app: str) -> None:
        owner = self.application(app)
        self.record(
            f.GangLapsed(
                application_id=app,
                serial=owner.serial,
                queue=owner.queue.path,
                commitment=owner.spec.placeholder_ask,
                waited_ns=1,
                at_ns=self.now_ns,
            )
        )

    def park(self, key: str, placeholder: str, node: str, app: str = APP) -> str:
        """Begin the swap of a placeholder, named by its key; return its UUID."""
        owner = self.application(app)
        (uuid,) = owner.asks[placeholder].uuids
        spec = owner.asks[key].spec
        self.record(
            self._asked_back(uuid, app, TerminationType.PLACEHOLDER_REPLACED),
            f.AskParked(
                application_id=app,
                key=key,
                resource=spec.resource,
                placeholder=uuid,
                node_id=node,
                crosses=owner.allocations[uuid].node_id != node,
                at_ns=self.now_ns,
            ),
        )
        return uuid


_ASK_FIELDS = frozenset(AskSpec.__struct_fields__)


def _spec(app: str, key: str, parts: dict[str, Any], **fields: Any) -> AskSpec:
    """Take the parts for amounts, but for those that have the name of a field."""
    resource = {name: part for name, part in parts.items() if name not in _ASK_FIELDS}
    named = {name: part for name, part in parts.items() if name in _ASK_FIELDS}
    return AskSpec(application_id=app, key=key, resource=resource, **fields, **named)


def start_another(written: Written) -> None:
    """The leaf starts one application at a time, and another one is starting."""
    written.reconfigure(LEAF, properties=STATEAWARE)
    written.add("other")
    written.move("other", ApplicationState.STARTING)


def older_waits(written: Written) -> None:
    """The leaf starts one application at a time, and an older one is the next."""
    written.reconfigure(LEAF, properties=STATEAWARE)
    written.add("older")
    written.ask("o", "older", vcore=1, created_ns=1)
