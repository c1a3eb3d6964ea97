"""Names that were used before: they are found with a warning, for one release.

Of modules only those that are documented are listed. The finder comes first in `sys.meta_path`: a
folder of the former name that only holds bytecode would be found as a package of its own.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

FORMER: Final = {
    "domain": "state",
    "domain.config": "config",
    "domain.facts": "state.facts",
    "domain.proposals": "state.proposals",
    "domain.queue": "state.queues",
    "domain.resource": "values.resource",
    "gateway": "core.entry",
    "lab.escapes": "lab.nondeterminism_guard",
    "lab.play": "lab.run_schedule",
    "lab.story": "lab.narrative",
    "lab.trial": "lab.user_program",
    "lab.workload": "lab.user_program",
    "service.read.side": "service.read.read_model",
    "service.rest.asking": "service.rest.exchange",
    "service.rest.server": "service.rest.http_server",
    "si.constants": "values.tags",
    "sim": "drivers.simulator",
    "sim.simulator": "drivers.simulator.simulator",
    "trace.again": "trace.checkpointed_replay",
    "trace.refusals": "trace.refused",
    "trace.compare": "trace.compare_runs",
    "trace.why": "trace.causes",
}
CALLS: Final = {
    "callback_error_counts": "managers",
    "catch_up": "followers",
    "count_waiting": "questions",
    "counts": "questions",
    "diagnostics": "questions",
    "follow": "followers",
    "is_registered": "managers",
    "open_stream": "followers",
    "set_drained": "operator",
    "unfollow": "followers",
    "unhandled": "managers",
    "unregister_lost": "operator",
    "waiting_asks": "questions",
}
"""Calls that a core had itself, and the part of it that has them now."""
_ROOT: Final = __package__ + "."


class FormerNames:
    """Finder and loader; their base classes in `importlib.abc` take a tenth of a start to load."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.removeprefix(_ROOT) not in FORMER or not fullname.startswith(_ROOT):
            return None
        return ModuleSpec(fullname, cast("Any", self))

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty one, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        former = module.__name__
        now = _ROOT + FORMER[former.removeprefix(_ROOT)]
        warnings.warn(
            f"{former} is {now} now; the former name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        sys.modules[former] = import_module(now)


class FormerCalls:
    """A core that passes the calls on that its parts have now."""

    # Hidden from type checkers: they would take any name for one of these.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            part = CALLS.get(name)
            if part is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            now = f"{name} of a core is {part}.{name} now"
            warnings.warn(
                f"{now}; the former name goes with the next release",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(getattr(self, part), name)
