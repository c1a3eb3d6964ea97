"""What a program gives to make or stop a core: each argument is checked at the call."""

import os
from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import Any, Final, Literal, get_args

from yunikorn_actors.config import parse_config
from yunikorn_actors.config.fault import DOCUMENT, TEXT_BYTES_MAX, ConfigError, Fault
from yunikorn_actors.drivers.live.clock import Clock
from yunikorn_actors.errors import CoreStopped, InvalidRequest
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.policies.registry import NO_POLICIES, Policies
from yunikorn_actors.recording.recorder import TraceSettings
from yunikorn_actors.values.durations import LONGEST_S


def read_config(config: str | Path, policies: Policies = NO_POLICIES) -> str:
    """Read and check a configuration; return its text.

    A text differs from the name of a file by a colon, which every text that says anything has.
    """
    is_text = isinstance(config, str) and (":" in config or not config.strip())
    text = str(config) if is_text else read_file(Path(config))
    parse_config(text, policies.names_for(text))
    return text


def read_file(path: Path) -> str:
    """Read a file; of one without an end no more than is needed to refuse it for its size.

    A pipe or a device may never end.
    """
    with path.open("rb") as file:
        data = file.read(TEXT_BYTES_MAX + 1)
    try:
        # What is too large may be cut inside of a character.
        return data.decode(errors="replace" if len(data) > TEXT_BYTES_MAX else "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = Fault(line=line, path=DOCUMENT, what="no UTF-8", remedy="save the file as UTF-8")
        raise ConfigError([fault]) from None


CoreDriver = Literal["threads", "direct"]
_DRIVERS: Final = get_args(CoreDriver)
_FORMS: Final[dict[str, tuple[Any, str]]] = {
    "address": (str, "HOST:PORT"),
    "ca": (str | Path, "the name of a file"),
    "cert": (str | Path, "the name of a file"),
    "clock": (Clock, "a Clock, such as RealClock()"),
    "config": (str | Path, "a file, or its text"),
    "driver": (str, f"one of {', '.join(_DRIVERS)}"),
    "instance": (str, "a text"),
    "journal": (str | Path, "the name of a folder"),
    "key": (str | Path, "the name of a file"),
    "on_callback_error": (Callable, "a function"),
    "on_failure": (Callable, "a function"),
    "policies": (Mapping, "a mapping of names to policies"),
    "settings": (Settings, "Settings"),
    "token": (str, "a text"),
    "trace": (str | Path | TraceSettings, "the name of a file, or TraceSettings"),
}
"""What each argument may be, as a check and in words."""
_NEVER: Final[dict[str, Callable[[Any], bool]]] = {
    "driver": lambda driver: driver not in _DRIVERS,
    # Empty it would be the present folder, which nobody means; no name has a NUL.
    "journal": lambda journal: journal == "" or "\0" in str(journal),
}
"""What has the right type, and is wrong all the same."""


def check_forms(**given: object) -> None:
    """Raise InvalidRequest for the first argument of a wrong form; None means not given."""
    for name, value in given.items():
        kind, form = _FORMS[name]
        if value is None:
            continue
        if not isinstance(value, kind):
            raise InvalidRequest(f"{name}: must be {form}, not {type(value).__name__}")
        if name in _NEVER and _NEVER[name](value):
            raise InvalidRequest(f"{name}: must be {form}, not {value!r:.100}")


def read_timeout(call: str, timeout: object) -> float:
    """Return seconds that every wait accepts: `inf` becomes the longest one."""
    if not isinstance(timeout, int | float) or isnan(timeout):
        raise InvalidRequest(f"{call}: timeout: must be seconds, not {timeout!r:.100}")
    return float(min(timeout, LONGEST_S))


def check_process(process: int) -> None:
    """Raise in the fork of a process: the threads that it would wait for are the parent's."""
    if os.getpid() != process:
        raise CoreStopped(
            "the core is the parent's, whose threads a forked process does not have: wait for this "
            "there, or make another scheduler in this process"
        )
