"""The form of a request, checked at the call, before anything of it is taken.

The form is all that can be checked without knowing the cluster: types, sizes, and required ids. A
request with a wrong form is refused as a whole, by an exception. The core checks everything else
(unknown partitions, negative amounts, zero repeats) and rejects the single items.
"""

from typing import Final

from yunikorn_actors.si.allocation import Allocation, AllocationRelease, AllocationRequest
from yunikorn_actors.si.application_messages import (
    AddApplicationRequest,
    ApplicationRequest,
    RemoveApplicationRequest,
)
from yunikorn_actors.si.ask import AllocationAsk, AllocationAskRelease
from yunikorn_actors.si.checks import Check, Flaw, Form, Forms, compiled, text_check
from yunikorn_actors.si.node import NodeInfo, NodeRequest
from yunikorn_actors.si.plain import (
    plain_allocation,
    plain_ask,
    plain_release,
    plain_request,
    plain_resource,
)
from yunikorn_actors.si.registration import (
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
)
from yunikorn_actors.si.resource_message import Resource
from yunikorn_actors.si.wire import LONGEST_NAME, SiMessage
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.values.tags import TAG_FOREIGN


class InvalidRequest(ValueError):  # noqa: N818 - the interface's own word, as callers know it
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
    for step in () if request.rm_id else ("policy_group", "extra_config"):
        if getattr(request, step):
            return Flaw(
                path=f".{step}", reason="belongs to a resource manager; set rm_id, or leave it out"
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
