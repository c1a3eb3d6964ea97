"""Policies by name, and what tells one from another of the same name."""

import hashlib
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cached_property, lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import Struct, convert, to_builtins

from yunikorn_actors.config.policy_names import ANY_NAMES, SHIPPED_NAMES, PolicyNames
from yunikorn_actors.policies import places
from yunikorn_actors.policies.conservative import Conservative
from yunikorn_actors.policies.fair_decay import FairDecay
from yunikorn_actors.policies.fgd import Fgd
from yunikorn_actors.policies.guard import Watch, tried, unwatched
from yunikorn_actors.policies.shipped import BestFit, DominantShare, Easy, Fcfs, LargestFirst, Sjf
from yunikorn_actors.version import VERSION

Policy = Callable[[], Any]
"""A class, or whatever makes a policy when it is called."""

SHIPPED: Final[dict[str, Policy]] = {
    "fcfs": Fcfs,
    "easy": Easy,
    "conservative": Conservative,
    "sjf": Sjf,
    "largest-first": LargestFirst,
    "fair-decay": FairDecay,
    "dominant-share": DominantShare,
    "best-fit": BestFit,
    "fgd": Fgd,
}
GROUP: Final = "yunikorn_actors.policies"
"""The entry points of installed packages."""

READS: Final = frozenset({"used", "runtime_ns", "size", "priority", "waited_ns", "state"})
"""What changes while an application waits."""
EVERY_S: Final = 60
LEAST_S: Final = 0.001
"""Every so many seconds keys that go by the time may be made anew, and how often at most."""
DAY_S: Final = 24 * 3600
_OF_LEAF: Final = (places.ApplicationOrder, places.AsksOrder, places.Gate, places.VictimOrder)


class InvalidPolicy(ValueError):
    """It is no policy: it cannot be made, or decides nothing."""


class MissingPolicy(InvalidPolicy):
    """What was recorded or kept was decided by a policy that is not given now."""


class PolicyChanged(UserWarning):
    """A policy of this name is not the one that decided what was recorded or kept."""


class BrokenPolicy(UserWarning):
    """An installed package offers what is no policy."""


class Policies:
    """What the names in a configuration stand for beside those that are built in."""

    def __init__(self, given: Mapping[str, Policy] | None = None, watch: Watch = unwatched) -> None:
        self.given: Final = dict(given or {})
        self._taking: dict[str, bool] = {}
        """By name whether leaves under it take gangs."""
        self._gated: dict[str, bool] = {}
        """By name whether it says who of a leaf may start."""
        self.watch: Final = watch
        """Who drives a core may measure its calls; nothing that is decided goes by that."""
        for name, policy in self.given.items():
            _check(name, policy)

    def beside(self, others: "Policies") -> "Policies":
        """Return both; of one name it is the one that stands here."""
        return Policies(others.given | self.given) if others.given else self

    def make(self, name: str) -> Any | None:  # noqa: ANN401 - it has the methods it has
        """Return a new one; None where the name stands for nothing."""
        policy = self.given.get(name) or SHIPPED.get(name) or installed().get(name)
        return None if policy is None else policy()

    def takes_gangs(self, name: str) -> bool:
        """Whether leaves under this policy do; they do unless it says otherwise."""
        if name not in self._taking:
            made, _ = tried("making it", lambda: self.make(name))
            self._taking[name] = getattr(made, "takes_gangs", True) is not False
        return self._taking[name]

    def has_gate(self, name: str) -> bool:
        if name not in self._gated:
            made, _ = tried("making it", lambda: self.make(name))
            self._gated[name] = isinstance(made, places.Gate)
        return self._gated[name]

    @cached_property
    def names(self) -> PolicyNames:
        return _named(installed() | SHIPPED | self.given, is_closed=bool(self.given))

    @property
    def own_names(self) -> PolicyNames:
        """Those of the given ones alone."""
        return _named(self.given, is_closed=True)

    def names_for(self, text: str) -> PolicyNames:
        """Return those that a configuration may use; one that names no policy needs no list."""
        return self.names if self.given or "policy" in text else SHIPPED_NAMES

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digest of each that was given or that an installed package has, by name.

        Those that are shipped have none: the version of the package stands beside it.
        """
        known = installed() | self.given
        return {name: digest_of(policy) for name, policy in sorted(known.items())}

    def digest(self, name: str) -> str:
        return self.digests.get(name, VERSION)

    def has(self, name: str, digest: str) -> bool:
        """Whether the policy of this name has the same source as when this was its digest."""
        return self.digest(name) == digest

    def compare(self, recorded: Mapping[str, str], where: object) -> None:
        """Compare with the digests of a recording or a journal.

        Raises MissingPolicy where one is missing, and warns where one is another one.
        """
        missing = sorted(recorded.keys() - self.digests.keys())
        if missing:
            raise MissingPolicy(
                f"{where}: decided by {_listed(missing)}, which is not given: give it by its name, "
                "with `policies=` or `--policies MODULE:ATTRIBUTE`, or install the package that "
                "has it"
            )
        for name, digest in recorded.items():
            if digest != self.digests[name]:
                warnings.warn(
                    f"{where}: policy {name!r} is not the one that decided then: its digest was "
                    f"{digest} and is {self.digests[name]} now, so decisions may differ; give the "
                    "source that it had then for the same ones",
                    PolicyChanged,
                    stacklevel=2,
                )


def _named(policies: Mapping[str, Policy], *, is_closed: bool) -> PolicyNames:
    known = {name: policy() for name, policy in policies.items()}
    return PolicyNames(
        applications=_which(known, *_OF_LEAF),
        queues=_which(known, places.QueueOrder),
        nodes=_which(known, places.NodeScore),
        is_closed=is_closed,
    )


def _listed(names: Sequence[str]) -> str:
    return f"polic{'y' if len(names) == 1 else 'ies'} {', '.join(map(repr, names))}"


def _which(known: Mapping[str, Any], *kinds: Any) -> tuple[str, ...]:  # noqa: ANN401 - protocols
    return tuple(name for name, made in known.items() if isinstance(made, kinds))


@lru_cache(maxsize=1)
def installed() -> dict[str, Policy]:
    """Load what installed packages offer; what is no policy is warned of, and stops nobody."""
    # On first use only: it is a tenth of a start.
    from importlib.metadata import entry_points  # noqa: PLC0415

    found: dict[str, Policy] = {}
    for point in entry_points(group=GROUP):
        policy: Any
        policy, fault = tried("loading it", point.load)
        try:
            _check(point.name, policy)
        except InvalidPolicy as error:
            what = f"entry point {point.name} = {point.value} of {GROUP} counts as not there"
            warnings.warn(f"{what}: {fault or error}", BrokenPolicy, stacklevel=2)
        else:
            found[point.name] = policy
    return found


_DIGESTS: Final[WeakKeyDictionary[Policy, str]] = WeakKeyDictionary()
"""Of those that were asked for: to find the source of a class, Python parses its whole file."""


def digest_of(policy: Policy) -> str:
    """Make it of the source of the class and of those it derives from, else of its name."""
    try:
        known = _DIGESTS.get(policy)
    except TypeError:  # nothing to remember it by
        return _digest_of(policy)
    if known is None:
        known = _DIGESTS[policy] = _digest_of(policy)
    return known


def _digest_of(policy: Policy) -> str:
    kinds = policy.__mro__[:-1] if isinstance(policy, type) else (policy,)
    texts = []
    for kind in kinds:
        try:
            texts.append(inspect.getsource(kind))
        except (OSError, TypeError):
            texts.append(f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}")
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def reads_of(policy: object) -> frozenset[str]:
    """Return what the key of an application goes by, beside what stays as it is."""
    reads = getattr(policy, "reads", ())
    words = frozenset(reads) if isinstance(reads, tuple | list | set | frozenset) else {reads}
    if not words <= READS:
        raise InvalidPolicy(
            f"reads is {reads!r:.100}: make it a tuple of {', '.join(sorted(READS))}"
        )
    return frozenset(words)


def methods_of(policy: object) -> dict[str, Any]:
    """Return what it decides by, by name; a property of it may raise here."""
    return {it: getattr(policy, it) for it in places.METHODS if hasattr(policy, it)}


def step_of(policy: object) -> int:
    """Return after how many nanoseconds keys that go by the time are others; 0 if none does."""
    if "waited_ns" not in reads_of(policy):
        return 0
    every_s = getattr(policy, "every_s", EVERY_S)
    is_number = isinstance(every_s, int | float) and not isinstance(every_s, bool)
    if not is_number or not LEAST_S <= every_s <= DAY_S:
        raise InvalidPolicy(
            f"every_s is {every_s!r:.100}: make it a number of seconds from {LEAST_S} to {DAY_S}"
        )
    return round(every_s * 1e9)


def _check(name: str, policy: Policy) -> None:
    if not callable(policy):
        raise InvalidPolicy(f"policy {name!r}: give a class, not {policy!r:.100}")
    made, fault = tried("making it", policy)
    if fault:
        raise InvalidPolicy(f"policy {name!r} cannot be made: {fault}")
    _, fault = tried("reading its methods", methods_of, made)
    if fault:
        raise InvalidPolicy(f"policy {name!r}: {fault}: let its attributes raise nothing")
    kinds = (*_OF_LEAF, places.QueueOrder, places.NodeScore)
    if not any(isinstance(made, kind) for kind in kinds):
        raise InvalidPolicy(
            f"policy {name!r} decides nothing: give it one of the methods application_key, "
            "ask_key, queue_key, score, may_start and victim_key"
        )
    if isinstance(made, places.Fold) and not (is_dataclass(made) or isinstance(made, Struct)):
        raise InvalidPolicy(
            f"policy {name!r} has observe: make it a dataclass or a Struct, whose typed fields are "
            "what it keeps"
        )
    if isinstance(made, places.Fold) and (fault := unwritable(made)):
        raise InvalidPolicy(
            f"policy {name!r} has observe, and what it keeps cannot be written down: {fault}: "
            "give its fields types of plain values"
        )


def unwritable(fold: object) -> str:
    """Say why snapshots and journals cannot keep what it keeps; the empty text if they can."""
    _, fault = tried("keeping it", lambda: convert(to_builtins(fold), type(fold)))
    return fault


class _PoliciesElsewhere(Policies):
    """Those of a core that is served elsewhere, which alone knows them."""

    def names_for(self, text: str) -> PolicyNames:  # noqa: ARG002 - whatever it names
        return ANY_NAMES


NO_POLICIES: Final = Policies()
ELSEWHERE: Final = _PoliciesElsewhere()
