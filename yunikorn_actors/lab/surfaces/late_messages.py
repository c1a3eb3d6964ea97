"""What machines do with messages that come late, twice, or changed in one place.

A run sends what managers, timers and machines have to say, once and in order. Here copies of the
machines, as they are at rest and at some moments before that, are sent some of it again: several
in a row, before what comes of the first is there. Amounts, names, options and lists in it are
others of that run, empty ones or repeated ones.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.made_calls import in_text, in_words, made_calls
from yunikorn_actors.lab.surfaces.made_values import CannotMake, Values
from yunikorn_actors.machines.machine import Machine, Send, SetTimer, StartMachine
from yunikorn_actors.messages.base import RM_PROXY, Message, role_of
from yunikorn_actors.messages.rm_events import (
    RegistrationRequested,
    RMLost,
    RMRegistered,
    RMUnregistered,
)
from yunikorn_actors.values.durations import SECOND

Sent = tuple[str, Message]
_KEPT: Final = 4
"""Of one type to one mailbox, and of those the last."""
_ROUNDS: Final = 40
_MOMENTS: Final = 3
_SELDOM: Final = 40
"""One message to Context in so many is such a moment."""
_FRESH: Final = 8
"""After so many machines are again as they were."""
_OFTEN: Final = 3
_ENDS: Final = (RegistrationRequested, RMLost, RMRegistered, RMUnregistered)
"""What leaves little of a core."""
_HANDLED_MAX: Final = 60
"""In one round: machines that fail may leave others without an end."""


class LateMessages:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._kept: dict[tuple[str, type], list[Message]] = {}
        self._moments: list[tuple[dict[str, Machine], int]] = []
        self._machines: dict[str, Machine] = {}
        self._now_ns = 0

    def note(self, mailbox: str, message: Message) -> None:
        """Keep what was sent to a machine, or to others that do not answer."""
        kept = self._kept.setdefault((mailbox, type(message)), [])
        kept.append(message)
        del kept[:-_KEPT]

    def pass_by(self, machines: Mapping[str, Machine], now_ns: int) -> None:
        """Keep machines as they are while something happens, at a few moments."""
        if len(self._moments) < _MOMENTS and self._draw.once_in(_SELDOM):
            self.copy(machines, now_ns)

    def copy(self, machines: Mapping[str, Machine], now_ns: int) -> None:
        """Keep machines as they are now; not where a policy of theirs cannot be copied."""
        with suppress(TypeError):
            self._moments.append((deepcopy({**machines}), now_ns))

    def answers(self) -> Iterator[tuple[str, Any]]:
        draw, values = self._draw, Values(self._draw)
        kept, self._kept = self._kept, {}
        for kind, messages in kept.items():
            # What is done to them here must not be done to the run.
            with suppress(TypeError):
                self._kept[kind] = deepcopy(messages)
                values.show(self._kept[kind])
        known = {address for machines, _ in self._moments for address in machines}
        kinds = [it for it in self._kept if it[0] in known]
        # What its manager asks for gets through to most of a core.
        kinds += [it for it in kinds if it[0] == RM_PROXY and it[1] not in _ENDS] * _OFTEN
        for number in range(_ROUNDS if kinds else 0):
            if number % _FRESH == 0:
                self._machines, self._now_ns = deepcopy(draw.one_of(self._moments))
            self._now_ns += draw.one_of((0, 0, 1, SECOND, 1000 * SECOND))
            sent = [*self._sent(values, kinds)]
            names = [type(message).__name__ for _, message in sent]
            yield f"late messages {number}, {names}", [*self._handled(sent)]
        for machine in self._machines.values():
            values.show(machine)
        have_ended = yield from made_calls(values, draw)
        if not have_ended:
            return
        for address, machine in self._machines.items():
            yield f"what {address} keeps after late messages and calls", in_words(machine)

    def _sent(self, values: Values, kinds: list[tuple[str, type]]) -> Iterator[Sent]:
        draw = self._draw
        for _ in range(draw.whole(1, 3)):
            kind = draw.one_of(kinds)
            message = draw.one_of(self._kept[kind])
            with suppress(CannotMake, TypeError, ValueError):
                for _ in range(draw.number(3)):
                    message = values.changed(message)
            yield kind[0], message

    def _handled(self, sent: list[Sent]) -> Iterator[str]:
        """Handle messages and all that comes of them; say what each machine wants."""
        queue = deque(sent)
        for _ in range(_HANDLED_MAX):
            if not queue:
                return
            address, message = queue.popleft()
            yield in_text((role_of(address), message))
            machine = self._machines.get(address)
            if machine is None:
                continue
            try:
                effects = machine.handle(message, self._now_ns)
            except Exception as error:  # noqa: BLE001 - a machine refuses in its own way
                yield f"{role_of(address)} fails: {type(error).__name__}"
                continue
            for effect in effects:
                match effect:
                    case Send():
                        queue.append((effect.to, effect.message))
                    case StartMachine():
                        yield f"starts {effect.address}"
                    case SetTimer():
                        self.note(address, effect.message)
                        yield in_text(effect)
                    case _:
                        yield in_text(effect)
