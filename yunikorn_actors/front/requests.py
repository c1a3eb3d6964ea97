"""What the two schedulers have in common: how their arguments become requests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeVar, get_args

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.broker import Account, Broker, Promise
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.written import (
    Queues,
    placeholders,
    read_amounts,
    read_gang,
    read_queues,
    read_several,
    read_texts,
    read_timeout,
    shown,
    still_missing,
    whole_gang,
)
from yunikorn_actors.machines.settings import Settings

GRACE_S: Final = 30.0
PATIENT: Final = "1m"
"""The core waits that long for `fits`: a busy computer is no reason to refuse a node."""

NO_FIT: Final = "fits() says that it does not fit there"

L = TypeVar("L", bound=BaseLease)
Style = Literal["Soft", "Hard"]


def patient_settings() -> Settings:
    return Settings(predicate_timeout_ns=PATIENT)


class Terms(NamedTuple):
    """What a scheduler is made with."""

    queues: str
    rm_id: str
    partition: str
    grace: float

    @classmethod
    def read(cls, queues: Queues | None, rm_id: str, partition: str, grace: float) -> "Terms":
        for name, text in (("rm_id", rm_id), ("partition", partition)):
            if not isinstance(text, str):
                raise InvalidRequest(f"{name}: must be text, not {shown(text)}")
        if type(grace) not in {int, float} or not 0 <= grace < float("inf"):
            raise InvalidRequest(f"grace: must be seconds, 0 or more, not {shown(grace)}")
        return cls(read_queues(queues), rm_id, partition, float(grace))

    @property
    def registration(self) -> si.RegisterResourceManagerRequest:
        return si.RegisterResourceManagerRequest(
            rm_id=self.rm_id, policy_group=self.rm_id, config=self.queues
        )


def add_node(
    broker: Broker[L],
    node_id: str,
    amounts: tuple[si.Amount | None, si.Amount | None, Mapping[str, si.Amount] | None],
    attributes: Mapping[str, str] | None,
    running: Iterable[Running],
    accepted: Promise[list[L]],
) -> None:
    if not isinstance(node_id, str) or not node_id:
        raise InvalidRequest(f"add_node: {shown(node_id)} is no id; use a text that is not empty")
    written = read_amounts("add_node", *amounts)
    if not written:
        raise InvalidRequest("add_node: say how large it is: vcore=, memory=, or resources=")
    given = read_texts("add_node: attributes", attributes)
    if broker.partition:
        given.setdefault(si.NODE_PARTITION, broker.partition)
    info = si.NodeInfo(
        node_id=node_id,
        action=si.ActionFromRM.CREATE,
        attributes=given,
        schedulable_resource=si.Resource.parse(written),
    )
    broker.add_node(info, read_running("add_node", running), accepted)


def read_running(what: str, running: Iterable[Running]) -> Sequence[Running]:
    items = read_several(f"{what}: running", running)
    for item in items:
        if not isinstance(item, Running):
            raise InvalidRequest(
                f"{what}: running: must hold Running, not {type(item).__name__}: `lease.running` "
                "is one, and Running(**item) makes one of what was kept as JSON"
            )
    return items


def application(
    application_id: str,
    queue: str,
    user: str,
    groups: Iterable[str],
    gang_style: Style,
    tags: Mapping[str, str] | None,
) -> si.AddApplicationRequest:
    if gang_style not in get_args(Style):
        raise InvalidRequest(f"gang_style: must be 'Soft' or 'Hard', not {shown(gang_style)}")
    several = read_several("application: groups", groups)
    return si.AddApplicationRequest(
        application_id=application_id,
        queue_name=queue,
        ugi=si.UserGroupInformation(user=user, groups=several),
        gang_scheduling_style=gang_style,
        tags=read_texts("application: tags", tags),
    )


def add_application(
    broker: Broker[L],
    request: si.AddApplicationRequest,
    *,
    gang: Mapping[str, Mapping[str, si.Amount]] | None,
    timeout: str | float | None,
    stays: bool,
    running: Iterable[Running],
    accepted: Promise[Account[L]],
) -> Account[L]:
    """Send an application, and placeholders for what is missing of its gang."""
    name = request.application_id
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"application: {shown(name)} is no id; use a text that is not empty")
    groups = read_gang(gang)
    mine = [it for it in read_running("application", running) if it.application == name]
    missing = still_missing(groups, name, mine)
    tags = dict(request.tags)
    if stays:
        tags[si.APP_TAG_COMPLETING_DISABLE] = "true"
    if mine:
        tags.setdefault(si.APP_TAG_CREATE_FORCE, "true")
    account: Account[L] = Account(
        id=name,
        accepted=accepted,
        groups={group: members.written for group, members in groups.items()},
    )
    whole = replace(
        request,
        partition_name=broker.partition,
        tags=tags,
        placeholder_ask=whole_gang(missing),
        execution_timeout_milli_seconds=read_timeout("application", timeout),
    )
    broker.add_application(whole, placeholders(name, broker.partition, missing), account)
    return account
