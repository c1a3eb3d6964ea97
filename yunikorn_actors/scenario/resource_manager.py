"""The resource manager of a scenario: it records its responses, and confirms releases.

A release is one of an allocation if the allocation was announced or reported before. The list in
which it comes does not tell, because the two generations of the interface use different lists. The
manager confirms what the core releases by itself: in auto mode at once, by a call from inside the
callback, otherwise when a step says so.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, Literal

from yunikorn_actors import si
from yunikorn_actors.core.entry import Gateway
from yunikorn_actors.errors import UnknownResourceManager
from yunikorn_actors.scenario.step_structs import Denied
from yunikorn_actors.state.termination import ASKED_BACK
from yunikorn_actors.values.ids import partition_name

Confirmation = Literal["auto", "manual"]
Request = si.AllocationRequest | si.ApplicationRequest | si.NodeRequest


class SimulatedResourceManager(si.ResourceManagerCallback):
    """One registration; a second one of the same id is another object."""

    def __init__(self, core: Gateway, rm_id: str, confirmation: Confirmation) -> None:
        self.rm_id = rm_id
        self._core = core
        self._confirmation = confirmation
        self._accepted_apps: list[str] = []
        self._rejected_apps: dict[str, list[str]] = {}
        self._accepted_nodes: list[str] = []
        self._rejected_nodes: dict[str, list[str]] = {}
        self._rejected_asks: dict[str, list[str]] = {}
        self._new_keys: list[str] = []
        self._new_by_app: Counter[str] = Counter()
        self._released: list[dict[str, str]] = []
        self._released_asks: list[dict[str, str]] = []
        self._app_states: dict[str, list[str]] = {}
        self._container_states: dict[str, str] = {}
        self._log: list[str] = []
        self._removed_apps: dict[tuple[str, str], None] = {}
        self._known: dict[str, None] = {}
        """Allocations that were announced or reported: by UUID, or by key if it has none."""
        self._running: dict[str, str] = {}
        """UUID of what was announced last under a key, until its end is announced or confirmed."""
        self._last_release: dict[str, si.AllocationRelease] = {}
        self._outstanding: dict[str, si.AllocationRelease] = {}

    def view(self) -> dict[str, Any]:
        """Return all responses since it registered."""
        return {
            "accepted_apps": self._accepted_apps,
            "rejected_apps": self._rejected_apps,
            "accepted_nodes": self._accepted_nodes,
            "rejected_nodes": self._rejected_nodes,
            "rejected_asks": self._rejected_asks,
            "new": {"keys": self._new_keys, "applications": self._new_by_app},
            "released": self._released,
            "released_asks": self._released_asks,
            "app_states": self._app_states,
            "container_states": self._container_states,
            "log": self._log,
        }

    def has_removed(self, partition: str, application_id: str) -> bool:
        """Whether it removed the application and has not submitted it again."""
        return (partition, application_id) in self._removed_apps

    def uuid_of(self, key: str) -> str:
        """Return the UUID of the allocation that runs under a key; empty if none was announced."""
        return self._running.get(key, "")

    def unconfirmed(self) -> tuple[si.AllocationRelease, ...]:
        """Return the releases that it has not confirmed yet, oldest first."""
        return tuple(self._outstanding.values())

    # -- what it says

    def note(self, request: Request) -> None:
        """Remember the parts of its own request that the answers are compared with."""
        match request:
            case si.ApplicationRequest():
                self._note_applications(request)
            case si.NodeRequest():
                for node in request.nodes:
                    self._know(node.existing_allocations)
            case si.AllocationRequest():
                self._know(tuple(item for item in request.allocations if item.node_id))

    def confirm(
        self, application_id: str, key: str, type_: si.TerminationType, partition: str = ""
    ) -> None:
        """Answer the last release of this key, outstanding or not."""
        last = self._last_release.get(key, si.AllocationRelease(partition_name=partition))
        self._send_confirmation(
            si.AllocationRelease(
                partition_name=partition or last.partition_name,
                application_id=application_id,
                uuid=last.uuid,
                termination_type=type_,
                allocation_key=key,
            )
        )

    def confirm_all(self) -> None:
        """Answer everything outstanding, oldest first."""
        for release in self.unconfirmed():
            self._send_confirmation(release)

    def _send_confirmation(self, release: si.AllocationRelease) -> None:
        self._outstanding.pop(release.uuid, None)
        self._forget(release)
        releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
        self._core.update_allocation(si.AllocationRequest(rm_id=self.rm_id, releases=releases))

    def _forget(self, release: si.AllocationRelease) -> None:
        """Forget the running allocation of a key, unless a newer one has the key by now."""
        key = release.allocation_key
        if self._running.get(key) == release.uuid:
            del self._running[key]

    def _note_applications(self, request: si.ApplicationRequest) -> None:
        for new in request.new:
            full_name = partition_name(self.rm_id, new.partition_name)
            self._removed_apps.pop((full_name, new.application_id), None)
        for old in request.remove:
            full_name = partition_name(self.rm_id, old.partition_name)
            self._removed_apps[full_name, old.application_id] = None

    def _know(self, allocations: tuple[si.Allocation, ...]) -> None:
        for item in allocations:
            self._known[item.uuid or item.allocation_key] = None

    # -- its callback

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for refused in response.rejected:
            self._note_rejection("ask", self._rejected_asks, refused.allocation_key, refused.reason)
        for later in response.rejected_allocations:
            self._note_rejection("ask", self._rejected_asks, later.allocation_key, later.reason)
        for ask in response.released_asks:
            self._note_released_ask(ask.allocation_key, ask.termination_type)
        for release in response.released:
            self._note_release(release)
        for item in response.new:
            self._new_keys.append(item.allocation_key)
            self._new_by_app[item.application_id] += 1
            self._log.append(f"new {item.allocation_key}")
            self._running[item.allocation_key] = item.uuid
        self._know(response.new)

    def update_application(self, response: si.ApplicationResponse) -> None:
        for refused in response.rejected:
            self._note_rejection("app", self._rejected_apps, refused.application_id, refused.reason)
        for accepted in response.accepted:
            self._accepted_apps.append(accepted.application_id)
            self._log.append(f"accepted_app {accepted.application_id}")
        for updated in response.updated:
            self._app_states.setdefault(updated.application_id, []).append(updated.state)
            self._log.append(f"app {updated.application_id} {updated.state}")

    def update_node(self, response: si.NodeResponse) -> None:
        for refused in response.rejected:
            self._note_rejection("node", self._rejected_nodes, refused.node_id, refused.reason)
        for accepted in response.accepted:
            self._accepted_nodes.append(accepted.node_id)
            self._log.append(f"accepted_node {accepted.node_id}")

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._container_states[request.allocation_key] = request.state.name
        self._log.append(f"container {request.allocation_key} {request.state.name}")

    def _note_rejection(
        self, what: str, rejected: dict[str, list[str]], id_: str, reason: str
    ) -> None:
        rejected.setdefault(id_, []).append(reason)
        self._log.append(f"rejected_{what} {id_}")

    def _note_released_ask(self, key: str, type_: si.TerminationType) -> None:
        self._released_asks.append({"key": key, "type": type_.name})
        self._log.append(f"released_ask {key} {type_.name}")

    def _note_release(self, item: si.AllocationRelease) -> None:
        key, type_ = item.allocation_key, item.termination_type
        if item.uuid not in self._known and key not in self._known:
            self._note_released_ask(key, type_)
            return
        self._released.append({"key": key, "type": type_.name})
        self._log.append(f"released {key} {type_.name}")
        self._last_release[key] = item
        if type_ not in ASKED_BACK:
            self._forget(item)
            return
        self._outstanding[item.uuid] = item
        if self._confirmation == "auto":
            self._confirm_at_once()

    def _confirm_at_once(self) -> None:
        """Confirm all; a manager that was lost or has left cannot."""
        with suppress(UnknownResourceManager):
            self.confirm_all()


class ChoosyResourceManager(SimulatedResourceManager):
    """A resource manager with predicates: it can refuse nodes for its asks."""

    def __init__(self, core: Gateway, rm_id: str, confirmation: Confirmation) -> None:
        super().__init__(core, rm_id, confirmation)
        self._denied: tuple[Denied, ...] = ()
        self._victims = 0
        """So many more than are needed it wants to go."""

    def deny(self, denied: Iterable[Denied], victims: int | None = None) -> None:
        """Refuse these from now on; the empty request makes the core ask about all again."""
        self._denied, self._victims = tuple(denied), victims or 0
        self._core.update_allocation(si.AllocationRequest(rm_id=self.rm_id))

    def refusal_of(self, key: str, node_id: str) -> Denied | None:
        """Return why this ask may not have the node."""
        fits = (it for it in self._denied if fnmatchcase(key, it.key))
        return next((it for it in fits if fnmatchcase(node_id, it.node)), None)

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        refusal = self.refusal_of(args.allocation_key, args.node_id)
        if refusal is None:
            return None
        reason = f"{args.allocation_key} may not run on {args.node_id}"
        if refusal.raises:
            raise LookupError(reason)
        return reason


class DemandingResourceManager(ChoosyResourceManager):
    """One that is asked about victims as well."""

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        if self.refusal_of(args.allocation_key, args.node_id) is not None:
            return None
        last = len(args.preempt_allocation_keys) - 1
        index = max(args.start_index, min(last, args.start_index + self._victims))
        return si.PreemptionPredicatesResponse(success=True, index=index)
