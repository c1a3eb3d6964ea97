"""What small functions make of amounts, texts and names that no world has.

A world has two or three types of resources, in amounts that fit. Functions that all decisions rest
on promise more: a type that one side does not name, less than nothing, as much as there is. So each
public function of some modules is called with arguments that are drawn by their types.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

from yunikorn_actors.config import Acl, ExtraConfig, PreemptionPolicy, QueueProperties, properties
from yunikorn_actors.config import extra as extra_keys
from yunikorn_actors.config import names as config_names
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.planning import reasons
from yunikorn_actors.planning.preemption import device_room, victim_rules
from yunikorn_actors.policies import built_in
from yunikorn_actors.recording import plain_text
from yunikorn_actors.recording.text_width import columns, cut
from yunikorn_actors.service.address import parted
from yunikorn_actors.service.metrics import exposition
from yunikorn_actors.service.read import rendering
from yunikorn_actors.service.rest import request_guard
from yunikorn_actors.si import form, wire
from yunikorn_actors.state import device_fit, gates, in_words
from yunikorn_actors.values import devices, ids, masking, quantity, resource, tag_lookup
from yunikorn_actors.values.resource import INT64_MAX
from yunikorn_actors.values.tags import GPU_DEVICES
from yunikorn_actors.what_if import text as what_if_text

_MODULES: Final = (
    resource, quantity, devices, built_in, gates, properties,
    # As they are shown, named, written and covered.
    config_names, reasons, device_room, victim_rules, plain_text, exposition,
    rendering, request_guard, form, wire, device_fit, in_words, ids, masking, tag_lookup,
    what_if_text,
)  # fmt: skip
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
    "yunikorn-actors-80=a.b; c=d", "\x1b[1mn1", "Ä\u200b漢", "one\ntwo", "a" * 70,
)  # fmt: skip
_SECRETS: Final = (
    "password=abc def", '{"token": "abc", "n": [1, {"api_key": "x"}]}',
    "secret: |\n  abc\n  def\nb: 1", "Authorization: Bearer abc.def",
    "--password hunter2 --count 3", "tokens: 12, passwords: ['a', 'b']",
    "client_secret = [\n  one,\n  two\n]", "https://ann:abc@host/path?token=x&b=1", "keytab: /a/b",
    "AWS_SECRET_ACCESS_KEY='a b', X=1", "nothing to hide", "password:\n  a: 1\n  token: ''",
)  # fmt: skip
"""What texts say of passwords, in the forms in which they do."""
_KEYS: Final = (*properties.READERS, *extra_keys.READERS, GPU_DEVICES, GPU_DEVICES, GPU_DEVICES)
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
        _Call("masked", masking.masked, (lambda draw: draw.one_of(_SECRETS),)),
        _Call("allows", lambda acl, *whom: Acl.parse(acl).allows(*whom), (_text, _text, _texts)),
    )


def computed(draw: Draw) -> Iterator[str]:
    """Call each function once; say what it returned and what it did to its arguments."""
    for call in calls():
        arguments = [make(draw) for make in call.of]
        named = {name: make(draw) for name, make in call.named.items()}
        try:
            answer = call.function(*arguments, **named)
            found = list(answer) if isinstance(answer, Iterator) else answer
        except (ValueError, LookupError, ArithmeticError) as error:
            found = repr(error)
        if not callable(found):
            yield f"{call.name}: {found!r} of {arguments!r} {named or ''}"
