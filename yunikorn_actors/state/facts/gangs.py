"""What is true of gangs: their admission, and the swaps of their placeholders."""

from yunikorn_actors.state.facts.fact import Base
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.devices import Devices
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.resource import Resource


class GangAdmitted(Base, frozen=True, kw_only=True):
    """There is room for the whole gang: from here on its placeholders are placed."""

    application_id: str
    serial: int
    queue: str
    commitment: Resource
    """What is still to be placed; it counts as used when another gang is admitted."""
    at_ns: int
    proposal_id: int = NO_PROPOSAL


class GangLapsed(Base, frozen=True, kw_only=True):
    """An admitted gang had no placeholder for too long: it awaits admission anew, behind others."""

    application_id: str
    serial: int
    queue: str
    commitment: Resource
    """What was still to be placed; it counts as used no longer."""
    waited_ns: int
    """How long it had none."""
    at_ns: int


class AskParked(Base, frozen=True, kw_only=True):
    """One repeat of a real ask waits for the end of its placeholder, neither pending nor charged.

    Only another node than the placeholder's is charged at once.
    """

    application_id: str
    key: str
    resource: Resource
    placeholder: str
    """UUID of the placeholder, whose release has been asked for."""
    node_id: str
    crosses: bool
    at_ns: int
    proposal_id: int = NO_PROPOSAL
    devices: Devices = ()
    """Those that it holds on another node; on its placeholder's it gets that one's."""


class AskUnparked(Base, frozen=True, kw_only=True):
    """The swap is off: the repeat waits again, the placeholder ends without it."""

    application_id: str
    key: str
    resource: Resource
    placeholder: str
    node_id: str
    crosses: bool
    reason: str
    at_ns: int
    frees: bool = False
    """Nobody takes the placeholder's room over. If not, it is for this ask, which lost nothing but
    the node that it was to move to."""


class PlaceholderCancelled(Base, frozen=True, kw_only=True):
    """A member has come that is larger than its placeholder, which is given up."""

    application_id: str
    task_group: str
    key: str
    resource: Resource
    placeholder: str
    placeholder_key: str
    placeholder_resource: Resource
    at_ns: int


class SwapCompleted(Base, frozen=True, kw_only=True):
    """The placeholder is gone and the real allocation stands in its place, in one step."""

    application_id: str
    queue: str
    user: str
    key: str
    uuid: str
    node_id: str
    resource: Resource
    placeholder: str
    placeholder_key: str
    placeholder_node: str
    placeholder_resource: Resource
    type: TerminationType
    """How the placeholder ended: the state of the core, not this type, made it a swap."""
    at_ns: int
    group: str = ""
    devices: Devices = ()

    @property
    def is_even(self) -> bool:
        """Whether queues, users and nodes use the same before and after."""
        return self.node_id == self.placeholder_node and self.resource == self.placeholder_resource
