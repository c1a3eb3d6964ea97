"""What small functions make of amounts, texts and names that no world has.

A world has two or three types of resources, in amounts that fit. Functions that all decisions rest
on promise more: a type that one side does not name, less than nothing, as much as there is. So each
public function of some modules is called with arguments that are drawn by their types.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import chain
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

from yunikorn_actors import si
from yunikorn_actors.config import (
    Acl,
    ExtraConfig,
    PreemptionPolicy,
    QueueProperties,
    placement_rules,
    properties,
)
from yunikorn_actors.config import extra as extra_keys
from yunikorn_actors.config import names as config_names
from yunikorn_actors.core.groups import UNKNOWN_NS, UserGroups
from yunikorn_actors.front import arguments
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.machines import topology
from yunikorn_actors.planning import reasons
from yunikorn_actors.planning.preemption import device_room, victim_rules
from yunikorn_actors.policies import built_in, folds, guard, inputs
from yunikorn_actors.policies.inputs import Hold
from yunikorn_actors.recording import plain_text
from yunikorn_actors.recording.text_width import columns, cut
from yunikorn_actors.runtime import core_arguments
from yunikorn_actors.service.address import parted
from yunikorn_actors.service.metrics import exposition
from yunikorn_actors.service.read import rendering
from yunikorn_actors.service.rest import admin_routes, request_guard
from yunikorn_actors.si import form, wire
from yunikorn_actors.state import device_fit, gates
from yunikorn_actors.state.facts import fact
from yunikorn_actors.trace import filters
from yunikorn_actors.trace.export import markdown, mermaid, shiviz
from yunikorn_actors.values import devices, durations, ids, masking, quantity, resource, tag_lookup
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.values.tags import GPU_DEVICES
from yunikorn_actors.what_if import simulation
from yunikorn_actors.what_if import text as what_if_text
from yunikorn_actors.workload import charts, figures, jobs, replay_summary

_MODULES: Final = (
    resource, quantity, devices, built_in, gates, properties,
    # As they are shown, named, written and covered.
    config_names, reasons, device_room, victim_rules, plain_text, exposition,
    rendering, request_guard, form, wire, device_fit, fact, ids, masking, tag_lookup,
    what_if_text,
    # As they are read where a person or a policy may write anything.
    arguments, core_arguments, filters, folds, guard, inputs, placement_rules,
    topology,
    # As figures and names are written for people and other programs.
    admin_routes, charts, durations, figures, jobs, markdown, mermaid, replay_summary, shiviz,
    simulation,
)  # fmt: skip
_ODD: Final[tuple[Any, ...]] = (
    None, 0, -1, 7, 2**80, True, 0.5, float("nan"), float("inf"), "", "a", b"a", (), (1,), (1, "a"),
    ("a", (2, 0.5)), ((), 1.0), [1], {}, {"a": 1}, 1j, object, Hold("r"), Hold("r", 2**90, False),
)  # fmt: skip
"""What somebody may give or return who has read nothing."""
_KINDS: Final = ("vcore", "memory", "pods", "nvidia.com/gpu")
_SIZES: Final = (
    *(0, 0, 1, 2, 3, 500, 1000, 1500, 2000, 4000, -1, -1000, 2**40, INT64_MAX, -INT64_MAX - 1),
)
_TEXTS: Final = (
    "", "vcore", "cpu", "memory", "mem", "pods", "1", "0", "-1", "10m", "3000m", "1.5", "1Ki", "2G",
    "8Ei", "9223372036854775808", "1h1m", "0.5s", "5/10m", "10%/1m", "none", "fair", "FAIR", "fifo",
    PreemptionPolicy.FENCE.value, "disabled", "enabled", "true", "T", "false", "*", "ann",
    "ann,bob dev", " dev,ops",
    "a b c", "immediate", "application", "fcfs", "100", "101", "2147483648", "root.a", "warn", "-3",
    "0,2", "3-5", "A100", "9999999999999h", "99999999999999999999h", "5/0s", "cpus", "ram",
    "root", "root.a.x", "[rm-1]default", "rm-1", "localhost:80", "[::1]:9080", "127.0.0.1:x",
    "0000000000000000000000001s", "1s0000000000000000000000000ms", ".5s", "5.s", "1.m", "007",
    "end", "7ms", "context/5", "queue=root.a,cpu=1,count=2", "queue=root.a,gpu=1:A",
    "yunikorn-actors-80=a.b; c=d", "\x1b[1mn1", "Ä\u200b漢", "one\ntwo", "a" * 70,
)  # fmt: skip
_SECRETS: Final = (
    "password=abc def", '{"token": "abc", "n": [1, {"api_key": "x"}]}',
    "secret: |\n  abc\n  def\nb: 1", "Authorization: Bearer abc.def",
    "--password hunter2 --count 3", "tokens: 12, passwords: ['a', 'b']",
    "client_secret = [\n  one,\n  two\n]", "https://ann:abc@host/path?token=x&b=1", "keytab: /a/b",
    "AWS_SECRET_ACCESS_KEY='a b', X=1", "nothing to hide", "password:\n  a: 1\n  token: ''",
    "GET /a?x=1&sig=abc%2Bd&y=2", "curl -u ann:abc https://host", "mysql -h db -p abc -e x",
    "docker run -p 80:80 image", "redis-cli -h db -a abc", "thin:ann/abc@db", "basic YW5uOmFiYzE=",
    "the token was abc123def", "a bearer of news", "postgres://:abc@host/db", "http://host:80/a@b",
    "https://abcdefghij0123456789@host/", "https://hooks.slack.com/services/T0/B0/abc",
    "https://host/api/webhooks/17/abc-d", f"hf_{'aB' * 17}", f"npm_{'a1' * 16}", f"dapi{'0f' * 16}",
    f"pypi-{'aB' * 12}", f"shpat_{'0f' * 16}", f"AGE-SECRET-KEY-1{'A1' * 11}",
    f"eyJ{'a' * 9}.{'b' * 9}.{'c' * 9}", f"SG.{'a' * 17}.{'b' * 17}", f"dop_v1_{'0f' * 17}",
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nafter",
)  # fmt: skip
"""What texts say of passwords, in the forms in which they do."""
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_KEYS: Final = (*properties.READERS, *extra_keys.READERS, GPU_DEVICES, GPU_DEVICES, GPU_DEVICES)
_ALIKE: Final = 8
_OPTIONAL: Final = 5
"""What may be left out is, once in so many."""


def _amounts(draw: Draw) -> dict[str, int]:
    return {kind: draw.one_of(_SIZES) for kind in _KINDS if draw.once_in(2)}


def _maybe(make: Callable[[Draw], Any]) -> Callable[[Draw], Any]:
    return lambda draw: None if draw.once_in(_OPTIONAL) else make(draw)


def _text(draw: Draw) -> str:
    return draw.one_of(_TEXTS)


def _texts(draw: Draw) -> tuple[str, ...]:
    return tuple(_text(draw) for _ in range(draw.whole(0, 3)))


def _named(draw: Draw) -> dict[str, str]:
    return {draw.one_of(_KEYS): _text(draw) for _ in range(draw.whole(0, 5))}


def _free(draw: Draw) -> list[int]:
    return [draw.one_of((0, 250, 500, 1000, 1000)) for _ in range(draw.whole(0, 4))]


def _users(draw: Draw) -> tuple[str, ...]:
    return tuple(draw.one_of(("ann", "bob", "bob", "cid ", "", "later")) for _ in range(6))


def _groups(names: tuple[str, ...], forced: bool) -> list[Any]:
    """Have the groups of users looked up one after the other, in a directory that knows few."""
    now_ns, known = 0, {"ann": ("dev", "ops"), "later": ("dev",)}
    users = UserGroups("drawn", known.get, lambda: now_ns)
    found: list[Any] = []
    for name in names:
        now_ns += UNKNOWN_NS // 2
        own = ("own",) if name == "later" and forced else ()
        given = si.UserGroupInformation(user=name, groups=own)
        try:
            found.append(users.resolve(given, forced=forced and bool(found)))
        except LookupError as error:
            found.append(str(error))
            known |= {"bob": ("late",)}
    return [*found, len(users)]


def _numbers(draw: Draw) -> tuple[int, ...]:
    return tuple(draw.whole(-1, 4) for _ in range(draw.whole(0, 3)))


def _shares(draw: Draw) -> list[float]:
    return sorted(draw.one_of((0.0, 0.25, 0.5, 0.5, 1.0)) for _ in range(draw.whole(0, 3)))


_DRAWN: Final[dict[Any, Callable[[Draw], Any]]] = {
    dict[str, int]: _amounts,
    dict[str, int] | None: _maybe(_amounts),
    Mapping[str, int]: _amounts,
    Mapping[str, int] | None: _maybe(_amounts),
    Iterable[tuple[str, int]]: lambda draw: tuple(_amounts(draw).items()),
    str: _text,
    tuple[str, ...]: _texts,
    Sequence[str]: _texts,
    dict[str, str]: _named,
    Mapping[str, str]: _named,
    int: lambda draw: draw.one_of(_SIZES),
    float: lambda draw: draw.one_of((0.0, 0.5, 1.0, 1.5, -0.5, 3.0)),
    bool: lambda draw: draw.once_in(2),
    Sequence[int]: _free,
    list[int]: _free,
    tuple[int, ...]: _numbers,
    Iterable[int]: _numbers,
    list[float]: _shares,
    object: lambda draw: draw.one_of(_ODD),
}


class _Call(NamedTuple):
    name: str
    function: Callable[..., Any]
    of: tuple[Callable[[Draw], Any], ...]
    """What its arguments are drawn by."""
    named: Mapping[str, Callable[[Draw], Any]] = {}


def _of_module(module: ModuleType) -> Iterator[_Call]:
    """Yield its own public functions, but for those with arguments that nothing draws."""
    for name, it in sorted(vars(module).items()):
        it = inspect.unwrap(it) if inspect.isfunction(it) else it  # noqa: PLW2901 - without a cache
        if name.startswith("_") or not inspect.isfunction(it) or it.__module__ != module.__name__:
            continue
        hints = get_type_hints(it)
        drawn, named = [], dict[str, Callable[[Draw], Any]]()
        for parameter in inspect.signature(it).parameters.values():
            hint = hints.get(parameter.name)
            make = _maybe(_amounts) if isinstance(hint, TypeVar) else _DRAWN.get(hint)
            if make is None:
                break
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = make
            else:
                drawn.append(make)
        else:
            yield _Call(name, it, tuple(drawn), named)


@cache
def calls() -> tuple[_Call, ...]:
    own = chain.from_iterable(map(_of_module, _MODULES))
    return (
        *own,
        _Call("properties", QueueProperties.of, (_named,)),
        _Call("extra configuration", ExtraConfig.of, (_named,)),
        _Call("parted", parted, (_text,)),
        _Call("columns", columns, (_text,)),
        _Call("cut", cut, (_texts, lambda draw: draw.whole(1, 12))),
        *(_Call("masked", masking.masked, (lambda draw: draw.one_of(_SECRETS),)),) * 3,
        _Call("groups", _groups, (_users, lambda draw: draw.once_in(2))),
        _Call("allows", lambda acl, *whom: Acl.parse(acl).allows(*whom), (_text, _text, _texts)),
    )


def computed(draw: Draw) -> Iterator[str]:
    """Call each function once; say what it returned and what it did to its arguments."""
    for call in calls():
        arguments = [make(draw) for make in call.of]
        if draw.once_in(_ALIKE):
            # Two of one kind are equal here, which is seldom drawn.
            first = dict(zip(call.of, arguments, strict=True))
            arguments = [deepcopy(first[make]) for make in call.of]
        named = {name: make(draw) for name, make in call.named.items()}
        try:
            answer = call.function(*arguments, **named)
            found = list(answer) if isinstance(answer, Iterator) else answer
        except Exception as error:  # noqa: BLE001 - each refuses in its own way
            found = repr(error)
        if not callable(found):
            yield _ADDRESS.sub("", f"{call.name}: {found!r} of {arguments!r} {named or ''}")
