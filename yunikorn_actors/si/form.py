"""The form of a request, checked at the call, before anything of it is taken.

The form is all that can be checked without knowing the cluster: types, sizes, and required ids. A
request with a wrong form is refused as a whole, by an exception. The core checks everything else
(unknown partitions, negative amounts, zero repeats) and rejects the single items.

Requests hold hundreds of asks or of reports of running work, and nearly all are plain: short ASCII
names, small maps. The functions named `plain` accept a plain one in less than half the time of the
full check. After a no the full check decides. They must never accept what that would refuse.

The full check is made once from the declared types of the fields. It walks through a request in the
order of declaration and returns the first fault with its path, or None. Faults are returned, not
raised: the outer levels add their part of the path. Types must match exactly. A subclass of str or
dict could behave in any way, and the trace could not record it. A value that is the default of its
field is skipped: it is correct by declaration. So the None of an optional message never reaches the
check of that message.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct, inspect, structs

from yunikorn_actors.si import wire
from yunikorn_actors.si.allocation import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    PreemptionPolicy,
)
from yunikorn_actors.si.application_messages import (
    AddApplicationRequest,
    ApplicationRequest,
    RemoveApplicationRequest,
)
from yunikorn_actors.si.enums import TerminationType
from yunikorn_actors.si.node import NodeInfo, NodeRequest
from yunikorn_actors.si.registration import (
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
)
from yunikorn_actors.si.resource_message import Quantity, Resource
from yunikorn_actors.si.wire import LONGEST_NAME, SiMessage
from yunikorn_actors.values.resource import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from yunikorn_actors.values.tags import TAG_FOREIGN

MOST_ITEMS: Final = 100_000
"""In one repeated field or map: far more than any honest request has, and still harmless."""

_LONGEST_SHOWN: Final = 40
_NEVER_SKIPPED: Final = object()


class Flaw(Struct, frozen=True, kw_only=True):
    path: str = ""
    reason: str

    def under(self, step: str) -> "Flaw":
        return Flaw(path=step + self.path, reason=self.reason)


Check: TypeAlias = Callable[[object], Flaw | None]


class Form(Struct, frozen=True, kw_only=True):
    """What is required of a message beyond its declared types."""

    required: tuple[str, ...] = ()
    rule: Callable[[Any], Flaw | None] | None = None
    """Called last, when each field is correct."""
    plainly_sound: Callable[[object], bool] | None = None
    """A quick check: after its yes nothing else is checked, after its no everything is."""


Forms: TypeAlias = dict[type, Form]


def compiled(kind: type[Struct], forms: Forms) -> Check:
    return _check_of(inspect.type_info(kind), forms)


def _check_of(declared: inspect.Type, forms: Forms) -> Check:
    match declared:
        case inspect.Metadata(type=inspect.StrType(), extra={wire.MAX_BYTES: int(longest)}):
            return text_check(longest)
        case (
            inspect.IntType(ge=int(low), le=int(high))
            | inspect.Metadata(type=inspect.IntType(ge=int(low), le=int(high)))
        ):
            return _integer(low, high)
        case inspect.BoolType():
            return _exactly(bool)
        case inspect.EnumType(cls=kind):
            return _exactly(kind)
        case inspect.UnionType(types=(message, inspect.NoneType())):
            return _check_of(message, forms)
        case inspect.VarTupleType(item_type=item):
            return _repeated(_check_of(item, forms))
        case inspect.DictType(key_type=key, value_type=value):
            return _mapping(_check_of(key, forms), _check_of(value, forms))
        case inspect.StructType():
            return _message(declared, forms)
    raise TypeError(f"no check for {declared}: declare the field with a type of si.wire")


def _wrong_type(value: object, kind: type) -> Flaw:
    actual = type(value).__name__
    return Flaw(reason=f"must be {kind.__name__}, not {actual}; convert it before the call")


def _exactly(kind: type) -> Check:
    def check(value: object) -> Flaw | None:
        return None if type(value) is kind else _wrong_type(value, kind)

    return check


def _integer(low: int, high: int) -> Check:
    def check(value: object) -> Flaw | None:
        if type(value) is not int:
            return _wrong_type(value, int)
        if low <= value <= high:
            return None
        return Flaw(reason=f"must lie within {low} and {high}; the interface carries no more")

    return check


def text_check(longest: int) -> Check:
    def check(value: object) -> Flaw | None:
        if type(value) is not str:
            return _wrong_type(value, str)
        if value.isascii() and len(value) <= longest:
            return None
        return _text_fault(value, longest)

    return check


def _text_fault(value: str, longest: int) -> Flaw | None:
    # A character takes at least one byte, so a text with too many characters is not encoded.
    try:
        size = len(value) if len(value) > longest else len(value.encode())
    except UnicodeEncodeError as error:
        where = f"has a lone surrogate at character {error.start}"
        return Flaw(reason=f"{where}, which UTF-8 cannot carry; replace it")
    if size <= longest:
        return None
    return Flaw(reason=f"must be at most {longest} bytes of UTF-8; shorten it")


def _too_many(size: int) -> Flaw:
    return Flaw(reason=f"must have at most {MOST_ITEMS} items, not {size}; split the request")


def _repeated(item_check: Check) -> Check:
    def check(value: object) -> Flaw | None:
        if type(value) is not tuple:
            return _wrong_type(value, tuple)
        if len(value) > MOST_ITEMS:
            return _too_many(len(value))
        for index, item in enumerate(value):
            fault = item_check(item)
            if fault is not None:
                return fault.under(f"[{index}]")
        return None

    return check


def _mapping(key_check: Check, item_check: Check) -> Check:
    def check(value: object) -> Flaw | None:
        if type(value) is not dict:
            return _wrong_type(value, dict)
        if len(value) > MOST_ITEMS:
            return _too_many(len(value))
        for key, item in value.items():
            fault = key_check(key)
            if fault is not None:
                return Flaw(path=f"[{_shown(key)}]", reason=f"the key {fault.reason}")
            fault = item_check(item)
            if fault is not None:
                return fault.under(f"[{_shown(key)}]")
        return None

    return check


def _shown(key: object) -> str:
    """Name a key in a message, cut short and printable."""
    return ascii(key[:_LONGEST_SHOWN]) if isinstance(key, str) else f"<{type(key).__name__}>"


def _message(declared: inspect.StructType, forms: Forms) -> Check:
    kind = declared.cls
    form = forms.get(kind, Form())
    plainly_sound, rule = form.plainly_sound, form.rule
    steps = tuple(f".{field.name}" for field in declared.fields)
    defaults = tuple(
        _NEVER_SKIPPED if field.name in form.required else field.default
        for field in declared.fields
    )
    checks = tuple(_field(declared, field, form, forms) for field in declared.fields)

    def check(value: object) -> Flaw | None:
        if plainly_sound is not None and plainly_sound(value):
            return None
        if type(value) is not kind:
            return _wrong_type(value, kind)
        columns = zip(structs.astuple(value), defaults, checks, steps, strict=True)
        for item, default, item_check, step in columns:
            if item is not default:
                fault = item_check(item)
                if fault is not None:
                    return fault.under(step)
        return None if rule is None else rule(value)

    return check


def _field(owner: inspect.StructType, field: inspect.Field, form: Form, forms: Forms) -> Check:
    check = _check_of(field.type, forms)
    if field.name not in form.required:
        return check
    need = f"every {owner.cls.__name__} needs its {field.name}"
    return _present(check, Flaw(reason=f"must not be empty; {need}"))


def _present(check: Check, empty: Flaw) -> Check:
    return lambda value: check(value) or (None if value else empty)


def plain_request(request: object) -> bool:
    """Asks and releases of allocations, as nearly every request has them and nothing else."""
    return (
        type(request) is AllocationRequest
        and request.allocations == ()
        and type(request.rm_id) is str
        and 0 < len(request.rm_id) <= LONGEST_NAME
        and request.rm_id.isascii()
        and (request.asks == () or _plain_asks(request.asks))
        and (request.releases is None or _plain_releases(request.releases))
    )


def _plain_asks(asks: object) -> bool:
    if type(asks) is not tuple or len(asks) > MOST_ITEMS:
        return False
    # Most asks of a request share one object for their size: it is looked at once.
    size: object = None
    for ask in asks:
        if not plain_ask(ask, size):
            return False
        size = ask.resource_ask
    return True


def _plain_releases(releases: object) -> bool:
    return (
        type(releases) is AllocationReleasesRequest
        and releases.allocation_asks_to_release == ()
        and type(releases.allocations_to_release) is tuple
        and len(releases.allocations_to_release) <= MOST_ITEMS
        and all(map(plain_release, releases.allocations_to_release))
    )


# What follows is evaluated for each item that comes in, and a call for each field would cost more
# than all of them together: so each is one expression. The names of an item are one text here.
# Where that is short and ASCII, so is each of them.


def plain_release(release: object) -> bool:
    return (
        type(release) is AllocationRelease
        and type(release.uuid) is str
        and type(release.application_id) is str
        and type(release.allocation_key) is str
        and (names := release.uuid + release.application_id + release.allocation_key) != ""
        and type(release.partition_name) is str
        and type(release.message) is str
        and (names := names + release.partition_name + release.message).isascii()
        and len(names) <= LONGEST_NAME
        and type(release.termination_type) is TerminationType
        and type(release.grace_ms) is int
        and release.grace_ms == 0
    )


def plain_resource(resource: object) -> bool:
    if type(resource) is not Resource:
        return False
    amounts = resource.resources
    if type(amounts) is not dict or len(amounts) > MOST_ITEMS:
        return False
    for kind, quantity in amounts.items():
        if not (
            type(kind) is str
            and kind.isascii()
            and len(kind) <= LONGEST_NAME
            and type(quantity) is Quantity
            and type(quantity.value) is int
            and INT64_MIN <= quantity.value <= INT64_MAX
        ):
            return False
    return True


def plain_ask(ask: object, plain_size: object = None) -> bool:
    """Check one ask; of a size that is known as plain, or that is none, nothing is asked."""
    return (
        type(ask) is AllocationAsk
        and type(ask.allocation_key) is str
        and type(ask.application_id) is str
        and type(ask.partition_name) is str
        and type(ask.task_group_name) is str
        and ask.allocation_key != ""
        and ask.application_id != ""
        and (
            names := ask.allocation_key
            + ask.application_id
            + ask.partition_name
            + ask.task_group_name
        ).isascii()
        and len(names) <= LONGEST_NAME
        and type(ask.max_allocations) is int
        and INT32_MIN <= ask.max_allocations <= INT32_MAX
        and type(ask.priority) is int
        and INT32_MIN <= ask.priority <= INT32_MAX
        and type(ask.execution_timeout_milli_seconds) is int
        and INT32_MIN <= ask.execution_timeout_milli_seconds <= INT32_MAX
        and type(ask.placeholder) is bool
        and type(ask.originator) is bool
        and (
            ask.resource_ask is plain_size
            or ask.resource_ask is None
            or plain_resource(ask.resource_ask)
        )
        and (ask.preemption_policy is None or _plain_policy(ask.preemption_policy))
        and type(ask.tags) is dict
        and (not ask.tags or _plain_tags(ask.tags))
    )


def plain_allocation(item: object) -> bool:
    return (
        type(item) is Allocation
        and _plain_names(
            (
                item.allocation_key,
                item.uuid,
                item.node_id,
                item.application_id,
                item.partition_name,
                item.task_group_name,
            )
        )
        and item.allocation_key != ""
        and _plain_numbers((item.priority,))
        and type(item.placeholder) is bool
        and type(item.originator) is bool
        and (item.resource_per_alloc is None or plain_resource(item.resource_per_alloc))
        and (item.preemption_policy is None or _plain_policy(item.preemption_policy))
        and _plain_tags(item.allocation_tags)
    )


def _plain_names(names: Iterable[object]) -> bool:
    for name in names:
        if type(name) is not str or len(name) > LONGEST_NAME or not name.isascii():
            return False
    return True


def _plain_numbers(numbers: Iterable[object]) -> bool:
    for number in numbers:
        if type(number) is not int or not INT32_MIN <= number <= INT32_MAX:
            return False
    return True


def _plain_policy(policy: object) -> bool:
    return (
        type(policy) is PreemptionPolicy
        and type(policy.allow_preempt_self) is bool
        and type(policy.allow_preempt_other) is bool
    )


def _plain_tags(tags: object) -> bool:
    if type(tags) is not dict or len(tags) > MOST_ITEMS:
        return False
    # Keys and values are one row of names.
    return not tags or _plain_names((*tags, *tags.values()))


class InvalidRequest(ValueError):
    """The request is malformed, and nothing of it was taken."""


def check_form(request: object, kind: type[SiMessage] | None = None) -> None:
    """Raise InvalidRequest unless the request is well-formed, and of that kind if one is given."""
    actual = type(request)
    check = _CHECKS.get(actual) if kind is None or actual is kind else None
    if check is None:
        wanted = _KINDS if kind is None else kind.__name__
        raise InvalidRequest(f"{actual.__name__}: is not the request of this call; pass {wanted}")
    flaw = check(request)
    if flaw is not None:
        raise InvalidRequest(f"{actual.__name__}{flaw.path}: {flaw.reason}")


def flaw_of(request: SiMessage) -> Flaw | None:
    """Return what is wrong with the form of a request, for who words it otherwise."""
    return _CHECKS[type(request)](request)


def check_names(call: str, *, optional: tuple[str, ...] = (), **names: object) -> None:
    """Raise InvalidRequest for what cannot be the name of anything."""
    for what, name in names.items():
        fault = _check_name(name)
        if fault is None and not name and what not in optional:
            fault = Flaw(reason="must not be empty")
        if fault is not None:
            raise InvalidRequest(f"{call}.{what}: {fault.reason}")


def check_counts(call: str, *, least: int = 0, **counts: object) -> None:
    """Raise InvalidRequest for what is no number of things."""
    for what, count in counts.items():
        if type(count) is not int or not least <= count <= INT64_MAX:
            raise InvalidRequest(
                f"{call}.{what}: must be a whole number from {least} to {INT64_MAX}"
            )


def _release_names_something(release: AllocationRelease) -> Flaw | None:
    if release.uuid or release.allocation_key or release.application_id:
        return None
    return Flaw(reason="must name what to release; set uuid, allocation_key or application_id")


def _ask_release_names_something(release: AllocationAskRelease) -> Flaw | None:
    if release.allocation_key or release.application_id:
        return None
    return Flaw(reason="must name what to release; set allocation_key or application_id")


def _reported_have_owners(request: AllocationRequest) -> Flaw | None:
    for index, item in enumerate(request.allocations):
        if not item.application_id and TAG_FOREIGN not in item.allocation_tags:
            why = f"only an allocation with the tag {TAG_FOREIGN!r} belongs to no application"
            return _no_owner(f".allocations[{index}]", why)
    return None


def _existing_have_owners(node: NodeInfo) -> Flaw | None:
    for index, item in enumerate(node.existing_allocations):
        if not item.application_id:
            why = "give the application that runs there"
            return _no_owner(f".existing_allocations[{index}]", why)
    return None


def _administrator_says_the_configuration(request: UpdateConfigurationRequest) -> Flaw | None:
    """Without a resource manager it holds for every group without a configuration of its own."""
    if not request.rm_id:
        for step in ("policy_group", "extra_config"):
            if getattr(request, step):
                return Flaw(
                    path=f".{step}",
                    reason="belongs to a resource manager; set rm_id, or leave it out",
                )
    return None


def _no_owner(step: str, why: str) -> Flaw:
    return Flaw(path=f"{step}.application_id", reason=f"must not be empty; {why}")


_FORMS: Final[Forms] = {
    RegisterResourceManagerRequest: Form(required=("rm_id",)),
    AllocationRequest: Form(
        required=("rm_id",), rule=_reported_have_owners, plainly_sound=plain_request
    ),
    ApplicationRequest: Form(required=("rm_id",)),
    NodeRequest: Form(required=("rm_id",)),
    AllocationAsk: Form(required=("allocation_key", "application_id"), plainly_sound=plain_ask),
    Allocation: Form(required=("allocation_key",), plainly_sound=plain_allocation),
    AllocationRelease: Form(rule=_release_names_something, plainly_sound=plain_release),
    AllocationAskRelease: Form(rule=_ask_release_names_something),
    AddApplicationRequest: Form(required=("application_id",)),
    RemoveApplicationRequest: Form(required=("application_id",)),
    NodeInfo: Form(required=("node_id",), rule=_existing_have_owners),
    UpdateConfigurationRequest: Form(rule=_administrator_says_the_configuration),
    Resource: Form(plainly_sound=plain_resource),
}

_REQUESTS: Final = (
    RegisterResourceManagerRequest,
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    UpdateConfigurationRequest,
)
_KINDS: Final = ", ".join(kind.__name__ for kind in _REQUESTS)
_check_name: Final = text_check(LONGEST_NAME)
_CHECKS: Final[dict[type, Check]] = {kind: compiled(kind, _FORMS) for kind in _REQUESTS}
