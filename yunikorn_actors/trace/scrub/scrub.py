"""Replaces the names in a recording.

Only what came from outside has its names replaced. What machines say follows from that: the run is
repeated with the other names, beside a replay of what was recorded. So whatever a machine makes of
a name, a queue or a sentence, has the new one in it, and the result replays as the recording did.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from yunikorn_actors.messages.base import GATEWAY, TIMER, Cause, Delivery, Message, is_callback
from yunikorn_actors.messages.codec import FORMAT_VERSION, encode, timed_record_of
from yunikorn_actors.messages.scheduling import MachineFailed
from yunikorn_actors.policies.registry import Policies, Policy
from yunikorn_actors.trace.read import Footer, Header, TraceReader
from yunikorn_actors.trace.replay import DifferentError, Rerun
from yunikorn_actors.trace.scrub.cover import Cover
from yunikorn_actors.trace.text.show import place

INSTANCE: Final = "core"


class ScrubError(Exception):
    """The run cannot be repeated with other names."""


class Scrubbed:
    """The records with other names; iterate over it once."""

    def __init__(self, path: Path, policies: Mapping[str, Policy] | None = None) -> None:
        """Read all of it, for the names in it."""
        self._path, self._policies = path, policies
        with TraceReader(path) as trace:
            self._cover = Cover(trace.header.instance, INSTANCE)
            for delivery in trace:
                _renamed(self._cover, delivery)
        self._cover.settle()
        self.names = self._cover.names
        """How many there are."""
        self.messages = 0

    def __iter__(self) -> Iterator[bytes]:
        with TraceReader(self._path, policies=self._policies) as trace:
            header = replace(
                trace.header, format=FORMAT_VERSION, instance=INSTANCE, config_digest=""
            )
            recorded = Rerun.of(trace)
            twin = _Twin(header, trace.policies, self._cover)
            try:
                yield _first_named(header)
                for delivery, _ in recorded.follow(trace):
                    renamed = twin.repeat(delivery)
                    took_ns = delivery.previous_took_ns
                    yield encode(timed_record_of(renamed, took_ns, renamed.message))
                    self.messages += 1
                recorded.settle()
                recorded.compare(trace)
            except DifferentError as error:
                raise ScrubError(error.as_warning()) from error
            if trace.footer is not None:
                yield _first_named(twin.end(trace.footer))


def _first_named(record: Header | Footer) -> bytes:
    """Put the kind of a record first, where readers look for it."""
    return encode(msgspec.to_builtins(record))


class _Twin(Rerun):
    """The run with the other names."""

    def __init__(self, header: Header, policies: Policies, cover: Cover) -> None:
        super().__init__(header, policies)
        self._cover = cover

    def repeat(self, delivery: Delivery) -> Delivery:
        """Return a message with the other names, and let it be handled."""
        renamed = _renamed(self._cover, delivery)
        self._let_be_caused(renamed.cause)
        if _is_said_by_a_machine(delivery):
            renamed = renamed._replace(message=self._said(renamed, delivery))
        self.take(renamed, self.messages + 2)
        return renamed

    def _said(self, renamed: Delivery, recorded: Delivery) -> Message:
        said = self._sent.get((renamed.sender, renamed.mailbox))
        if not said or type(said[0].message) is not type(recorded.message):
            where = place(Cause(recorded.mailbox, recorded.step))
            raise ScrubError(
                f"with other names the run goes another way from {where} on, so the core decides "
                "by a name here: hand the recording in as it is, or a smaller one"
            )
        return said[0].message

    def end(self, footer: Footer) -> Footer:
        self.settle()
        names = {self._cover.address(name): name for name in footer.states}
        took = {self._cover.address(name): took for name, took in footer.took_ns.items()}
        failures = "; ".join(self.failed.values())
        return Footer(
            states={name: self._state(name) for name in names},
            failure=footer.failure and (failures or "the core failed"),
            took_ns=took,
        )


def _renamed(cover: Cover, delivery: Delivery) -> Delivery:
    """Replace the names; what machines have sent is made anew and needs none."""
    mailbox, sender = cover.address(delivery.mailbox), cover.address(delivery.sender)
    cause = Cause(cover.address(delivery.cause.mailbox), delivery.cause.step)
    message: Any = delivery.message
    if not _is_said_by_a_machine(delivery):
        message = cover.struct(message)
    return delivery._replace(mailbox=mailbox, sender=sender, cause=cause, message=message)


def _is_said_by_a_machine(delivery: Delivery) -> bool:
    """Whether it follows from what came before; that a machine has failed, its driver says."""
    sender, message = delivery.sender, delivery.message
    is_outside = sender in {GATEWAY, TIMER} or is_callback(sender)
    return not is_outside and not isinstance(message, MachineFailed)
