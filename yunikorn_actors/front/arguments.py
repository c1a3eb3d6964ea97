"""Arguments of a program: what a scheduler is made with, amounts, nodes, texts, durations.

They are checked here, and read into the messages of the interface.
"""

import json
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from yunikorn_actors import si
from yunikorn_actors.config import parse_duration, warnings_in
from yunikorn_actors.errors import ConfigWarning, InvalidRequest
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.policies.inputs import declared_ns
from yunikorn_actors.policies.registry import ELSEWHERE, NO_POLICIES, Policies, Policy
from yunikorn_actors.runtime.core_arguments import read_config
from yunikorn_actors.si.form import MOST_ITEMS, flaw_of
from yunikorn_actors.si.wire import SiMessage
from yunikorn_actors.values.devices import DEVICES_MAX, WHOLE, number_of
from yunikorn_actors.values.durations import NEVER_NS
from yunikorn_actors.values.quantity import meant_by
from yunikorn_actors.values.tags import GPU

L = TypeVar("L", bound=BaseLease)
T = TypeVar("T")


Queues = str | Path | Mapping[str, Any]
"""A file, its text, or what stands in it as a mapping."""


OPEN_QUEUE: Final = (
    "partitions: [{name: default, queues: "
    "[{name: root, submitacl: '*', queues: [{name: default}]}]}]"
)
"""Where a program configures no queues: `root.default`, open to everybody."""

_PACKAGE: Final = f"{__name__.partition('.')[0]}."

_MILLION: Final = 1_000_000


def read_queues(queues: Queues, policies: Policies = NO_POLICIES) -> str:
    """Return the text of a configuration, which has no fault."""
    if isinstance(queues, Mapping):
        try:
            # "{}" has no colon, so it would pass for the name of a file.
            queues = json.dumps(queues) if queues else ""
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest(f"queues: {error}; use what a YAML file could hold") from None
    if not isinstance(queues, str | Path):
        raise InvalidRequest(
            f"queues: must be a file, a text or a mapping, not {type(queues).__name__}"
        )
    text = read_config(queues, policies)
    for slip in warnings_in(text, policies.names_for(text)):
        # The warning points at the call of the program, not at this module.
        warnings.warn(f"queues: {slip}", ConfigWarning, _outside())
    return text


# The frames of this package say nothing to the program.
def _outside() -> int:
    """Return how far above `read_queues` the program is."""
    frame, level = sys._getframe(1), 1
    while frame.f_globals.get("__name__", "").startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


_ARGUMENTS: Final = {
    "queue_name": "queue",
    "ugi.": "",
    "allocation_key": "key",
    "schedulable_resource.resources": "resources",
    "resource_ask.resources": "resources",
    "preemption_policy.allow_preempt_self": "preemptible",
    "preemption_policy.allow_preempt_other": "may_preempt",
    "existing_allocations": "running",
    "resource_per_alloc.resources": "resources",
    "task_group_name": "group",
}
"""What a field of the interface is called in a call of the front, where that differs."""


def check_arguments(call: str, request: SiMessage) -> None:
    """Raise InvalidRequest for what the interface does not carry, by the name of the argument.

    The request has one item, or several that are alike, so the number of the item is left out.
    """
    flaw = flaw_of(request)
    if flaw is None:
        return
    # The item has one request, so its number is left out. A list that is too long has no item.
    argument = flaw.path.partition("].")[2] or flaw.path.lstrip(".")
    for field, name in _ARGUMENTS.items():
        argument = argument.replace(field, name)
    raise InvalidRequest(f"{call}: {argument}: {flaw.reason}")


def read_amounts(
    what: str,
    vcore: si.Amount | None,
    memory: si.Amount | None,
    resources: Mapping[str, si.Amount] | None,
    gpu: float | None = None,
    unknown: Mapping[str, object] = {},
) -> dict[str, si.Amount]:
    """Put amounts together as they were written; of devices in thousandths.

    `unknown` are arguments of an ask that there are none of.
    """
    if unknown:
        refuse_unknown(what, unknown, ASK_WORDS)
    amounts: dict[str, si.Amount] = {}
    if vcore is not None:
        amounts["vcore"] = vcore
    if memory is not None:
        amounts["memory"] = memory
    if gpu is not None:
        amounts[GPU] = read_gpu(what, gpu)
    if resources is not None and not isinstance(resources, Mapping):
        raise InvalidRequest(f"{what}: resources: must be a mapping from types to amounts")
    twice = sorted(amounts.keys() & (resources or {}).keys())
    if twice:
        raise InvalidRequest(f"{what}: {twice[0]} is given twice, by name and in resources")
    if resources:
        check_words(what, resources)
        amounts |= resources
    return amounts


def read_gpu(what: str, gpu: object) -> int:
    """Return thousandths of devices: less than a thousand of one, or so many whole ones."""
    if isinstance(gpu, int | float) and type(gpu) is not bool and 0 <= gpu <= DEVICES_MAX:
        amount = round(gpu * WHOLE)
        if gpu == 0 or number_of(amount):
            return amount
    raise InvalidRequest(
        f"{what}: gpu: {shown(gpu)} is neither a share of one, from 0.001 to 0.999, nor a number "
        "of whole ones"
    )


def with_model(what: str, tags: dict[str, str], model: object) -> dict[str, str]:
    """Add the models of devices that will do, if they are given."""
    if not isinstance(model, str):
        raise InvalidRequest(
            f"{what}: gpu_model: must be a model, or several as 'V100|A100', not {shown(model)}"
        )
    return {**tags, si.constants.GPU_MODEL: model} if model else tags


def check_model(what: str, model: str | None, amounts: Mapping[str, object], gpus: str) -> None:
    """Refuse a model of no devices: it would say nothing, and the caller means devices by it."""
    if model and GPU not in amounts:
        named = f"{what}: gpu_model: {shown(model)}"
        raise InvalidRequest(f"{named} of no devices: give {gpus} as well")


def with_runtime(what: str, tags: dict[str, str], runtime: object) -> dict[str, str]:
    """Add for how many seconds it will run."""
    if type(runtime) not in {int, float} or declared_ns(str(runtime)) is None:
        raise InvalidRequest(f"{what}: runtime: must be seconds, 0 or more, not {shown(runtime)}")
    return {**tags, si.constants.TAG_RUNTIME: str(runtime)}


def with_required_node(what: str, tags: dict[str, str], node: object) -> dict[str, str]:
    if not isinstance(node, str):
        raise InvalidRequest(f"{what}: required_node: must be the id of a node, not {shown(node)}")
    return {**tags, si.constants.TAG_REQUIRED_NODE: node} if node else tags


_AS_TAGS: Final = {
    "required_node": with_required_node,
    "gpu_model": with_model,
    "runtime": with_runtime,
}
"""Arguments of an ask that the interface has as tags: each is checked, and added to them."""
GROUP_TAGS: Final = ("required_node", "gpu_model")
"""Those that a group of a gang may have: they hold for the room that is kept, too."""


def with_tags(
    what: str,
    tags: dict[str, str],
    given: Mapping[str, Any],
    amounts: Mapping[str, object] = {},
    gpus: str = "",
) -> dict[str, str]:
    """Add what is given of these; `gpus` is how devices are asked for."""
    for word, add in _AS_TAGS.items():
        if word in given:
            tags = add(what, tags, given[word])
    check_model(what, given.get("gpu_model"), amounts, gpus)
    return tags


def check_words(
    what: str,
    written: Mapping[str, object],
    words: tuple[str, ...] = (),
    others: Mapping[str, str] = {},
) -> None:
    """Refuse what would be a resource type of its own and is a slip of another word.

    A type that nobody has would make an ask wait for ever, and bounds nothing in a quota.
    """
    for kind in written:
        if isinstance(kind, str) and (word := others.get(kind) or meant_by(kind, words)):
            raise InvalidRequest(
                f"{what}: {shown(kind)} would be a resource type; did you mean {word!r}?"
            )


NODE_WORDS: Final = ("resources", "gpus", "gpu_model", "attributes", "running")
ASK_WORDS: Final = (
    *("resources", "gpu", "gpu_model", "group", "priority", "required_node", "fits", "where"),
    *("spread", "apart_from", "count", "deadline", "runtime", "tags", "may_preempt", "preemptible"),
)
"""What may be given beside `vcore` and `memory`."""


def refuse_unknown(what: str, unknown: Mapping[str, object], words: tuple[str, ...]) -> NoReturn:
    """Refuse arguments that there are none of; `words` are those that are no amounts."""
    name = next(iter(unknown))
    meant = meant_by(name, words)
    instead = (
        f"write {meant}={shown(unknown[name])}"
        if meant
        else f"other types of resource go into resources={{{name!r}: ...}}"
    )
    raise InvalidRequest(f"{what}: there is no argument {name!r}: {instead}")


def shown(value: object) -> str:
    """Return a value as a message may have it, whatever it is."""
    try:
        return f"{value!r:.100}"
    except Exception:  # noqa: BLE001 - the edge: a class of the program, or a number too long
        return f"a {type(value).__name__}"


def read_texts(what: str, texts: Mapping[str, str] | None) -> dict[str, str]:
    """Take a mapping; that it holds texts is for the check of the request to say."""
    if texts is not None and not isinstance(texts, Mapping):
        raise InvalidRequest(f"{what}: must be a mapping from text to text, not {shown(texts)}")
    runtime = texts.get(si.constants.TAG_RUNTIME) if texts else None
    # Declared run times are parsed here, so that a wrong one is refused at the ask.
    if isinstance(runtime, str) and declared_ns(runtime) is None:
        raise InvalidRequest(
            f"{what}: {si.constants.TAG_RUNTIME}: must be seconds, 0 or more and below "
            f"{NEVER_NS / 1e9:.0e}, not {shown(runtime)}"
        )
    return dict(texts or {})


def read_several(what: str, items: Iterable[T]) -> tuple[T, ...]:
    """Take several items; a single text is refused, as it would count as its letters."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidRequest(f"{what}: must be a list or such, not {shown(items)}")
    return tuple(items)


def read_count(what: str, count: object) -> int:
    # True is an int as well, and no number that anyone means. All of them go in one request.
    if type(count) is not int or not 0 < count <= MOST_ITEMS:
        raise InvalidRequest(
            f"{what}: count: must be a whole number from 1 to {MOST_ITEMS}, not {shown(count)}"
        )
    return count


def read_timeout(what: str, timeout: str | float | None, name: str = "timeout") -> int:
    """Return milliseconds, 0 for None; a number means seconds."""
    if timeout is None:
        return 0
    nanos = parse_duration(timeout) if isinstance(timeout, str) else None
    # A number is seconds, and bounded: an overflow would be a time in the past.
    if type(timeout) in {int, float} and 0 < float(timeout) < _MILLION * 1000:
        nanos = int(float(timeout) * 1e9)
    # At least a millisecond: nothing shorter reaches the core.
    if nanos is None or nanos < _MILLION:
        raise InvalidRequest(
            f"{what}: {name}: {shown(timeout)} is no time; give seconds, or text such as '10m'"
        )
    return nanos // _MILLION


def changed_policy(
    policy: si.PreemptionPolicy, preemptible: bool | None, may_preempt: bool | None
) -> si.PreemptionPolicy:
    """Return the policy of an ask that says something about it."""
    kept, kept_other = policy.allow_preempt_self, policy.allow_preempt_other
    return si.PreemptionPolicy(
        allow_preempt_self=kept if preemptible is None else preemptible,
        allow_preempt_other=kept_other if may_preempt is None else may_preempt,
    )


def policies_of(core: object, given: Mapping[str, Policy] | None) -> Policies:
    """Return those that decide: of a core of the user's own its own, as far as they are known."""
    if core is None:
        return Policies(given)
    if given:
        raise InvalidRequest("policies: those of your core decide; give them to it, not here")
    # A core elsewhere knows its own; nothing of them is known here.
    built = getattr(core, "topology", None)
    return built.policies if isinstance(built, Topology) else ELSEWHERE


class Options(NamedTuple):
    """Fixed when a scheduler is made; every part of its front may know them."""

    queues: str
    rm_id: str
    partition: str
    grace: float

    @classmethod
    def read(
        cls,
        queues: Queues | None,
        rm_id: str,
        partition: str,
        grace: float,
        policies: Policies = NO_POLICIES,
    ) -> "Options":
        for name, text in (("rm_id", rm_id), ("partition", partition)):
            if not isinstance(text, str):
                raise InvalidRequest(f"{name}: must be text, not {shown(text)}")
        if type(grace) not in {int, float} or not 0 <= grace < float("inf"):
            raise InvalidRequest(f"grace: must be seconds, 0 or more, not {shown(grace)}")
        text = OPEN_QUEUE if queues is None else read_queues(queues, policies)
        return cls(text, rm_id, partition, float(grace))

    @property
    def registration(self) -> si.RegisterResourceManagerRequest:
        return si.RegisterResourceManagerRequest(
            rm_id=self.rm_id, policy_group=self.rm_id, config=self.queues
        )

    @property
    def full_partition(self) -> str:
        """The partition as the core names it."""
        return f"[{self.rm_id}]{self.partition or 'default'}"


GRACE_S: Final = 30.0
PATIENT: Final = "1m"
"""The core waits that long for `fits`: a busy computer is no reason to refuse a node."""


def objection_to(fit: object) -> str | None:
    """Return why a node is refused by what `fits` has returned; None if it will do."""
    if fit is None:
        # None is a mistake in the program: a function that forgets to return.
        return "fits() returned None, which is no: have it return True or False"
    return None if fit else "fits() says that it does not fit there"


def patient_settings() -> Settings:
    return Settings(predicate_timeout_ns=PATIENT)


class WrittenNode(NamedTuple):
    """A node as the program wrote it; nothing of it has been looked at."""

    node_id: str
    vcore: si.Amount | None
    memory: si.Amount | None
    resources: Mapping[str, si.Amount] | None
    gpus: int | None
    gpu_model: str
    attributes: Mapping[str, str] | None
    running: Iterable[Running]
    unknown: Mapping[str, object]
    """Arguments that there are none of."""


def node(options: Options, written: WrittenNode) -> tuple[si.NodeInfo, Sequence[Running]]:
    """Return the node for the core, and the work that runs there."""
    if written.unknown:
        refuse_unknown("add_node", written.unknown, NODE_WORDS)
    if not isinstance(written.node_id, str) or not written.node_id:
        raise InvalidRequest(
            f"add_node: {shown(written.node_id)} is no id; use a text that is not empty"
        )
    gpus = written.gpus
    if gpus is not None and type(gpus) is not int:
        raise InvalidRequest(f"add_node: gpus: must be a whole number, not {shown(gpus)}")
    amounts = read_amounts("add_node", written.vcore, written.memory, written.resources, gpus)
    if not amounts:
        raise InvalidRequest("add_node: say how large it is: vcore=, memory=, or resources=")
    given = read_texts("add_node: attributes", written.attributes)
    given = with_model("add_node", given, written.gpu_model)
    check_model("add_node", written.gpu_model, amounts, "gpus=")
    if gpus is not None:
        given[si.constants.GPU_DEVICES] = str(gpus)
    if options.partition:
        given.setdefault(si.constants.NODE_PARTITION, options.partition)
    info = si.NodeInfo(
        node_id=written.node_id,
        action=si.ActionFromRM.CREATE,
        attributes=given,
        schedulable_resource=si.Resource.parse(amounts),
    )
    return info, read_running("add_node", written.running)


def read_running(what: str, running: Iterable[Running]) -> Sequence[Running]:
    items = read_several(f"{what}: running", running)
    for item in items:
        if not isinstance(item, Running):
            raise InvalidRequest(
                f"{what}: running: must hold Running, not {type(item).__name__}: `lease.running` "
                "is one, and Running(**item) makes one of what was kept as JSON"
            )
    return items


def simulating(core: object, kind: type[T]) -> T:
    """Return the core if it is in this process; raise InvalidRequest with the remedy if not."""
    if not isinstance(core, kind):
        raise InvalidRequest(
            "simulate: the core is in another process: ask its service, with `yunikorn-actors "
            "simulate --server ADDR` or POST /ws/v1/x/simulate"
        )
    return core
