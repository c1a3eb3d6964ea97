"""Registrations: the records of all of a core, and to which of them a request belongs.

A registration ends when RmProxy stops its callback, because its resource manager registered again,
is lost or leaves; its last requests may stay unanswered. While one is under way requests belong to
it, unless it is refused: then the one before it stays.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from yunikorn_actors.checks.rm_comparison import States
from yunikorn_actors.checks.rm_record import RmRecord
from yunikorn_actors.config import ConfigError, parse_config
from yunikorn_actors.config.policy_names import ANY_NAMES
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.rm_events import (
    AllocationsRequested,
    ApplicationsRequested,
    ConfigurationRequested,
    NodesRequested,
    RegistrationRequested,
    RMLost,
    RMUnregistered,
)


class Registrations:
    def __init__(self, *, follows_facts: bool = False) -> None:
        self.records: dict[str, RmRecord] = {}
        """By address of the callback."""
        self._follows_facts = follows_facts
        self._addresses: dict[str, list[str]] = {}
        """The callbacks of each resource manager; requests belong to the last one."""
        self._meanwhile: dict[str, list[Any]] = {}
        """Requests that were sent while a registration, by its callback, was not decided."""
        self._configs: dict[str, None] = {}
        """All that were sent; a text is read only when a resource manager has no partition."""
        self._restored: dict[str, None] = {}
        """Resource managers that were registered with a core before this one."""

    def restored(self, rm_ids: Iterable[str]) -> None:
        self._restored.update(dict.fromkeys(rm_ids))

    def current(self) -> Iterator[RmRecord]:
        """Yield the record of each resource manager that is registered."""
        for addresses in self._addresses.values():
            if addresses:
                yield self.records[addresses[-1]]

    # -- messages to RmProxy, in the order in which it gets them

    def sent(self, message: Message) -> None:
        note = _NOTES.get(type(message))
        if note is not None:
            note(self, message)

    def _registration(self, message: RegistrationRequested) -> None:
        rm_id, address = message.request.rm_id, message.callback
        self._configs[message.request.config] = None
        self._addresses.setdefault(rm_id, []).append(address)
        self._meanwhile[address] = []
        was_restored = rm_id in self._restored
        self.records[address] = RmRecord(
            rm_id,
            takes_states=message.capabilities.hears_states,
            # What a core before this one has announced is in no fact of this one.
            follows_facts=self._follows_facts and not was_restored,
            was_restored=was_restored,
            others=self.records,
        )

    def _gone(self, message: RMLost | RMUnregistered) -> None:
        """What it requests from now on counts no more; RmProxy may have other work to do first."""
        # Popped: with a new registration its requests count again.
        for address in self._addresses.pop(message.rm_id, []):
            self._meanwhile.pop(address, None)

    def _request(
        self, message: AllocationsRequested | ApplicationsRequested | NodesRequested
    ) -> None:
        for address in self._addresses.get(message.request.rm_id, [])[-1:]:
            self.records[address].requested(message.request)
            if address in self._meanwhile:
                self._meanwhile[address].append(message.request)

    def _configuration(self, message: ConfigurationRequested) -> None:
        """It holds for others of the same group as well, and of an administrator for all."""
        self._configs[message.request.config] = None
        for record in self.records.values():
            record.requested(message.request)

    # -- what becomes of registrations

    def registered(self, rm_id: str, address: str) -> None:
        """Its former registrations are over; it may be over itself, if its manager was lost."""
        self._meanwhile.pop(address, None)
        addresses = self._addresses.get(rm_id, [])
        if address in addresses:
            # Those before it are over; those behind it may still be decided.
            del addresses[: addresses.index(address)]

    def refused(self, rm_id: str, address: str) -> None:
        """The former registration stays; the requests sent in the meantime belong to it."""
        self.records.pop(address, None)
        requests = self._meanwhile.pop(address, [])
        addresses = self._addresses.get(rm_id, [])
        if address in addresses:
            addresses.remove(address)
        # They were sent to the one that is registered, which is the former one.
        if addresses:
            for request in requests:
                self.records[addresses[-1]].requested(request)

    def stopped(self, address: str) -> None:
        """Nothing arrives at this callback any more."""
        self.records.pop(address, None)

    def forget_former(self) -> None:
        """Forget the records of registrations that are over."""
        current = [addresses[-1] for addresses in self._addresses.values() if addresses]
        for address in [it for it in self.records if it not in current]:
            del self.records[address]

    # -- the records and the truth, when nothing is on its way

    def differences(self, states_of: Callable[[str], States]) -> list[str]:
        """Compare all that the registered resource managers hold with their partitions."""
        faults: list[str] = []
        for record in self.current():
            states = states_of(record.rm_id)
            if not states and not any(map(_leaves_none, self._configs)):
                faults.append(f"G28: {record.rm_id} is registered, and has no partition")
            faults.extend(record.differences(states))
        return faults


def _leaves_none(config: str) -> bool:
    """Whether a configuration is taken and has no partition."""
    try:
        return not parse_config(config, ANY_NAMES).partitions
    except ConfigError:
        return False


_NOTES: dict[type, Callable[[Registrations, Any], None]] = {
    RegistrationRequested: Registrations._registration,
    RMLost: Registrations._gone,
    RMUnregistered: Registrations._gone,
    AllocationsRequested: Registrations._request,
    ApplicationsRequested: Registrations._request,
    NodesRequested: Registrations._request,
    ConfigurationRequested: Registrations._configuration,
}
NOTED = frozenset(_NOTES)
"""Messages to RmProxy that are noted."""
