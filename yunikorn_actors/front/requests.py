"""What the two schedulers have in common: how their arguments become requests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.books import Account, Promise
from yunikorn_actors.front.broker import Broker
from yunikorn_actors.front.gang import (
    PLAIN,
    placeholders,
    read_gang,
    read_treatment,
    still_missing,
    whole_gang,
)
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.terms import Terms
from yunikorn_actors.front.written import (
    read_amounts,
    read_several,
    read_texts,
    read_timeout,
    shown,
    with_model,
)
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state.placement import FALLBACK_PATH

GRACE_S: Final = 30.0
PATIENT: Final = "1m"
"""The core waits that long for `fits`: a busy computer is no reason to refuse a node."""

NO_FIT: Final = "fits() says that it does not fit there"

L = TypeVar("L", bound=BaseLease)
Style = Literal["Soft", "Hard"]


def patient_settings() -> Settings:
    return Settings(predicate_timeout_ns=PATIENT)


class NodeSize(NamedTuple):
    """As they are written."""

    vcore: si.Amount | None
    memory: si.Amount | None
    resources: Mapping[str, si.Amount] | None
    gpus: int | None = None
    gpu_model: str = ""


def node(
    terms: Terms, node_id: str, size: NodeSize, attributes: Mapping[str, str] | None
) -> si.NodeInfo:
    if not isinstance(node_id, str) or not node_id:
        raise InvalidRequest(f"add_node: {shown(node_id)} is no id; use a text that is not empty")
    if size.gpus is not None and type(size.gpus) is not int:
        raise InvalidRequest(f"add_node: gpus: must be a whole number, not {shown(size.gpus)}")
    written = read_amounts("add_node", *size[:3], size.gpus)
    if not written:
        raise InvalidRequest("add_node: say how large it is: vcore=, memory=, or resources=")
    given = read_texts("add_node: attributes", attributes)
    given = with_model("add_node", given, size.gpu_model)
    if size.gpus is not None:
        given[si.constants.GPU_DEVICES] = str(size.gpus)
    if terms.partition:
        given.setdefault(si.constants.NODE_PARTITION, terms.partition)
    return si.NodeInfo(
        node_id=node_id,
        action=si.ActionFromRM.CREATE,
        attributes=given,
        schedulable_resource=si.Resource.parse(written),
    )


def read_running(what: str, running: Iterable[Running]) -> Sequence[Running]:
    items = read_several(f"{what}: running", running)
    for item in items:
        if not isinstance(item, Running):
            raise InvalidRequest(
                f"{what}: running: must hold Running, not {type(item).__name__}: `lease.running` "
                "is one, and Running(**item) makes one of what was kept as JSON"
            )
    return items


@dataclass(frozen=True, kw_only=True)
class Submission:
    """An application as the program wrote it; nothing of it has been looked at."""

    application_id: str
    queue: str
    user: str
    groups: Iterable[str]
    gang: Mapping[str, Mapping[str, Any]] | None
    treatment: Mapping[str, Any]
    """What it says of how its asks are treated."""
    gang_style: Style
    timeout: str | float | None
    stays: bool
    running: Iterable[Running]
    tags: Mapping[str, str] | None
    fallback: bool


def add_application(
    broker: Broker[L], said: Submission, accepted: Promise[Account[L]]
) -> Account[L]:
    """Send an application, and placeholders for what is missing of its gang."""
    if said.gang_style not in get_args(Style):
        raise InvalidRequest(f"gang_style: must be 'Soft' or 'Hard', not {shown(said.gang_style)}")
    user_groups = read_several("application: groups", said.groups)
    tags = read_texts("application: tags", said.tags)
    name = said.application_id
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"application: {shown(name)} is no id; use a text that is not empty")
    treatment = read_treatment("application", said.treatment, PLAIN)
    gang = read_gang(said.gang, treatment)
    mine = [it for it in read_running("application", said.running) if it.application == name]
    missing = still_missing(gang, name, mine)
    if said.stays:
        tags[si.constants.APP_TAG_COMPLETING_DISABLE] = "true"
    if not isinstance(said.fallback, bool):
        raise InvalidRequest(f"fallback: must be True or False, not {shown(said.fallback)}")
    if not said.fallback and str(said.queue).lower() != FALLBACK_PATH:
        tags.setdefault(si.constants.APP_TAG_QUEUE_FALLBACK, "false")
    if mine:
        tags.setdefault(si.constants.APP_TAG_CREATE_FORCE, "true")
    partition = broker.terms.partition
    request = si.AddApplicationRequest(
        application_id=name,
        queue_name=said.queue,
        partition_name=partition,
        ugi=si.UserGroupInformation(user=said.user, groups=user_groups),
        tags=tags,
        gang_scheduling_style=said.gang_style,
        placeholder_ask=whole_gang(missing),
        execution_timeout_milli_seconds=read_timeout("application", said.timeout),
    )
    account: Account[L] = Account(
        id=name,
        accepted=accepted,
        queue=said.queue,
        groups=gang,
        treatment=treatment,
    )
    waiting = placeholders(name, partition, missing, broker.tags_without_fits)
    broker.add_application(account, request, waiting)
    return account
