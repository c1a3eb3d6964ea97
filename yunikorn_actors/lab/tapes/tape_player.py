"""Schedules that follow a tape, and that write one."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from yunikorn_actors.drivers.simulator.choosers import Channel, oldest
from yunikorn_actors.lab.harness import Schedule, World
from yunikorn_actors.lab.tapes.tape import THE_END, Entry, Tape
from yunikorn_actors.lab.tapes.tape_names import START

_KEYED: Final = ("twice", "never")
_AHEAD: Final = ("fail", "join")
"""What is to happen to a message, whenever it comes."""
_OF_MESSAGES: Final = ("hold", *_AHEAD)


class TapePlayer:
    """First in, first out, but for what the tape says."""

    def __init__(self, tape: Tape) -> None:
        self.watched: frozenset[str] | None = frozenset(
            name.partition("(")[0] for name in _messages(tape.entries)
        )
        self._entries = tape.entries
        self._happened: set[str] = set()
        self._confirmed: set[str] = set()
        self._held: dict[str, str] = {}
        """Messages that wait, each for an event."""
        self._released_by: dict[str, list[str]] = {}
        self._begun_by: dict[str, list[Entry]] = {}
        self._confirmations: dict[str, str] = {}
        self._due: deque[Entry] = deque()
        for entry in tape.entries:
            self._prepare(entry)
        self.happened(START)

    def _prepare(self, entry: Entry) -> None:
        if entry.verb == "hold":
            self._held[entry.what] = entry.after
            self._released_by.setdefault(entry.after, []).append(entry.what)
            return
        if entry.verb == "confirm":
            name, how = _confirmation(entry)
            self._confirmations[name] = how
        elif not entry.after:
            self._due.append(entry)
        if entry.after:
            self._begun_by.setdefault(entry.after, []).append(entry)

    def choose(self, world: World) -> Channel | Entry | None:
        if self._due:
            return self._due.popleft()
        channels = world.deliverable()
        if self._held:
            channels = {
                channel: queue
                for channel, queue in channels.items()
                if world.name_of(queue[0][0]) not in self._held
            }
        return oldest(channels) if channels else self._of_held(world)

    def _of_held(self, world: World) -> Channel | None:
        """Deliver what is held when the case cannot go on without it, the oldest first."""
        return oldest(world.channels) if world.channels and not world.next_step else None

    def happened(self, event: str) -> None:
        self._happened.add(event)
        for name in self._released_by.pop(event, ()):
            self._held.pop(name, None)
        self._due.extend(self._begun_by.pop(event, ()))

    def confirmation(self, name: str) -> str:
        self._confirmed.add(name)
        return self._confirmations.get(name, "")

    def absent(self, entry: Entry, world: World, *, has_failed: bool) -> str:
        """Say what of an entry did not come in the run that is over; empty if all of it did."""
        came = self._happened.union(world.simulator.names.values())
        if entry.verb in _OF_MESSAGES and (message := _message(entry)) not in came:
            return f"{message} did not come"
        if not entry.after:
            is_asked = entry.verb != "confirm" or _confirmation(entry)[0] in self._confirmed
            return "" if is_asked else "there was no such release to confirm"
        if entry.after in self._happened:
            return ""
        is_late = entry.verb in {"hold", "confirm"} and entry.after == THE_END
        is_held = entry.verb == "hold" and has_failed
        return "" if is_late or is_held else f"{entry.after} did not happen"


def _message(entry: Entry) -> str:
    return entry.what.removeprefix("at ").removeprefix("after ")


def _messages(entries: Iterable[Entry]) -> Iterable[str]:
    """Yield whatever in the entries may be the name of a message."""
    for entry in entries:
        yield _message(entry)
        yield entry.after.removeprefix("due ")


def _confirmation(entry: Entry) -> tuple[str, str]:
    """Return which confirmation is meant, and how it is sent."""
    if entry.after:
        return entry.what.partition(" as ")[0], "later"
    name, _, how = entry.what.rpartition(" ")
    if how not in _KEYED:
        name, _, type_ = entry.what.rpartition(" as ")
        how = f"as {type_}"
    return name, how


class Listening:
    """Follows another schedule, and notes all that happens."""

    watched: frozenset[str] | None = None

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.events: list[str] = []
        self.fatal: tuple[str, ...] = ()
        """The message that is being handled: in the end the one that ended the run."""

    def choose(self, world: World) -> Channel | Entry | None:
        choice = self._schedule.choose(world)
        if isinstance(choice, tuple):
            self.fatal = (world.name_of(world.channels[choice][0][0]),)
        return choice

    def happened(self, event: str) -> None:
        self.events.append(event)
        self.fatal = ()
        self._schedule.happened(event)

    def confirmation(self, name: str) -> str:
        return self._schedule.confirmation(name)


class TapeWriter:
    """Follows another schedule, and writes what it does as a tape.

    A message that others overtake is held until right after the event before its delivery. So the
    tape gives the same run: whatever is chosen is then the oldest message that is not held.
    A mailbox that is frozen for some events thaws on the tape after the last of them.
    """

    watched: frozenset[str] | None = None

    def __init__(self, schedule: Schedule) -> None:
        self._entries: list[Entry] = []
        self._schedule = schedule
        self._overtaken: dict[str, None] = {}
        self._late: dict[str, None] = {}
        self._frozen: dict[str, None] = {}
        self._before = START
        """The event that happened last."""

    def choose(self, world: World) -> Channel | Entry | None:
        for mailbox in [it for it in self._frozen if it not in world.frozen]:
            del self._frozen[mailbox]
            self._entries.append(Entry("thaw", mailbox, self._before))
        choice = self._schedule.choose(world)
        if isinstance(choice, Entry):
            self._note_entry(choice)
        else:
            self._note(world, choice)
        return choice

    def _note_entry(self, entry: Entry) -> None:
        what = entry.what
        if entry.verb == "freeze":
            what, _, _ = what.partition(" for ")
            self._frozen[what] = None
        elif entry.verb == "confirm":
            self._late.pop(what.partition(" as ")[0], None)
        after = "" if entry.verb in _AHEAD else self._before
        self._entries.append(replace(entry, what=what, after=after))

    def _note(self, world: World, choice: Channel | None) -> None:
        """Note who is overtaken: by a message, or by the next step of the case."""
        number = None if choice is None else world.channels[choice][0][0]
        for queue in world.deliverable().values():
            if number is None or queue[0][0] < number:
                self._overtaken[world.name_of(queue[0][0])] = None
        name = "" if number is None else world.name_of(number)
        if name in self._overtaken:
            del self._overtaken[name]
            self._entries.append(Entry("hold", name, self._before))

    def written(self) -> tuple[Entry, ...]:
        """Return all entries; what was put off and never came is put off to the end."""
        held = (Entry("hold", name, THE_END) for name in self._overtaken)
        unsent = (Entry("confirm", name, THE_END) for name in self._late)
        return (*self._entries, *held, *unsent)

    def happened(self, event: str) -> None:
        self._before = event
        self._schedule.happened(event)

    def confirmation(self, name: str) -> str:
        how = self._schedule.confirmation(name)
        if how == "later":
            self._late[name] = None
        elif how:
            self._entries.append(Entry("confirm", f"{name} {how}"))
        return how
