"""Checks of messages, made once from the declared types of their fields.

Making a message checks nothing, so a request can hold anything anywhere. A check walks through it
in the order of declaration and returns the first fault with its path, or None. Faults are returned,
not raised: the outer levels add their part of the path, and a correct request costs nothing extra.

Types must match exactly. A subclass of str or dict could behave in any way, and the trace could not
record it. A value that is the default of its field is skipped: it is correct by declaration. So the
None of an optional message never reaches the check of that message.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct, inspect, structs

from yunikorn_actors.si import wire

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
