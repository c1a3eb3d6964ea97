"""A driver that proposes wrongly on purpose: commit has to find out by itself."""

from written import Written

from yunikorn_actors.checks.model_audit import audit
from yunikorn_actors.checks.state_invariants import violations
from yunikorn_actors.machines.context.asks import take_item
from yunikorn_actors.machines.context.commit import commit, commit_all
from yunikorn_actors.machines.context.partition_context import PartitionContext, Uuids
from yunikorn_actors.machines.context.unit_of_work import Work
from yunikorn_actors.machines.life import Life
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages.rm_events import AskItem, Capabilities
from yunikorn_actors.state.allocations import AskSpec
from yunikorn_actors.state.facts import Fact
from yunikorn_actors.state.proposals import Allocate, Proposal, Refusal

Refused = tuple[int, Refusal]


class Driver:
    """Proposes whatever it is told to, and has it committed, so much later than it was written."""

    def __init__(self, written: Written, *, later_ns: int = 0, settings: Settings) -> None:
        self.written = written
        self.later_ns = later_ns
        self._settings = settings
        self._partition = PartitionContext(
            Life(
                partition=written.state.name,
                epoch=1,
                rm_id="rm-1",
                capabilities=Capabilities(),
            ),
            schedulers=1,
            commit=lambda *_: [],
            uuids=Uuids("core"),
            settings=settings,
        )
        self._partition.state = written.state
        self._partition.planner = written.planner

    def commit(self, proposal: Proposal) -> Refusal | None:
        """The books are right afterwards, and what is refused has changed nothing."""
        state = self.written.state
        before = state.revision
        work = Work("rm-1", self.written.now_ns + self.later_ns, self._settings)
        refusal = commit(work.unit(self._partition), proposal)
        assert refusal is None or before == state.revision
        assert [] == violations(state)
        assert [] == audit(self.written.planner)
        return refusal

    def commit_all(self, proposals: list[Proposal]) -> tuple[list[Fact], list[Refused]]:
        """Return the facts, and what was refused."""
        work = Work("rm-1", self.written.now_ns + self.later_ns, self._settings)
        unit = work.unit(self._partition)
        refused = [(it.proposal_id, reason) for it, reason in commit_all(unit, proposals)]
        assert [] == violations(self.written.state)
        assert [] == audit(self.written.planner)
        return unit.facts, refused

    def take(self, spec: AskSpec, node: str = "") -> None:
        """The resource manager sends an ask, or with a node a report."""
        state = self.written.state
        work = Work("rm-1", self.written.now_ns + self.later_ns, self._settings)
        item = AskItem(partition=state.name, spec=spec, node_id=node)
        take_item(work.unit(self._partition), item)
        assert [] == violations(state)
        assert [] == audit(self.written.planner)

    def allocate(self, key: str, node: str, app: str) -> Refusal | None:
        sequence = self.written.application(app).asks[key].sequence
        return self.commit(
            Allocate(proposal_id=1, application_id=app, key=key, sequence=sequence, node_id=node)
        )
