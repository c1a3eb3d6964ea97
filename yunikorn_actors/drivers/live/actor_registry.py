"""The actors of one core, by address, and how many messages each has received and handled.

A message to an actor that has ended is dropped, on whichever thread that happens. An actor that has
ended has nothing left to handle, so its counts are final and it can be forgotten.
"""

import threading
import time

from yunikorn_actors.drivers.live.actors import (
    Actor,
    MachineActor,
    OutsideActor,
    Outsider,
    System,
    actor_class,
    name_of,
)
from yunikorn_actors.drivers.live.dispatcher import Dispatcher
from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.messages.base import RM_PROXY, Envelope, is_callback_of


class ActorRegistry:
    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._lock = threading.RLock()
        """Guards who is known and the silence, so that the counts of all are read at one moment."""
        self.by_address: dict[str, Actor] = {}
        self._known: list[Actor] = []
        """Those with an address, and those retired that may still be at work."""
        self._handled_by_forgotten = 0
        self._silent = False

    def start(self, system: System, address: str, holder: Machine | Outsider) -> bool:
        """Set an actor up and replace the one there, if any; False when no more may be set up."""
        with self._lock:
            # After `silence` no actor is set up: nobody would end it.
            if self._silent:
                return False
            # Often enough: only a new actor makes the list longer.
            self._forget_ended()
            former = self.by_address.get(address)
            # Numbers of steps go on at the address, so a recording names each message once.
            step = 0 if former is None else former.step
            actor = self._make(system, address, holder, step)
            # Before it is at its address: nothing is put into an actor that cannot run yet.
            actor.launch()
            self._known.append(actor)
            self.by_address[address] = actor
        # Only now: between the two a caller would find nobody at the address, and be refused as if
        # the core had been stopped.
        if former is not None:
            former.end()
        return True

    def _make(self, system: System, address: str, holder: Machine | Outsider, step: int) -> Actor:
        name = name_of(address, holder)
        if isinstance(holder, Outsider):
            kind = actor_class(OutsideActor, name)
            return kind(system, address, holder, step, self._dispatcher)
        machine = actor_class(MachineActor, name)
        # Calls are taken in and answers go out through RmProxy, so it comes before the others.
        is_first = address == RM_PROXY
        return machine(system, address, holder, step, self._dispatcher, comes_first=is_first)

    def tell(self, address: str, envelope: Envelope) -> bool:
        """Leave an envelope at an address; False when nobody takes it there."""
        # No lock: a look into a dictionary is atomic.
        actor = self.by_address.get(address)
        return actor is not None and actor.put(envelope)

    def retire(self, address: str) -> None:
        """Nothing at this address is handled any more; a call that is under way ends by itself."""
        with self._lock:
            actor = self.by_address.pop(address, None)
        if actor is not None:
            # Read by `in_a_call`: only a former callback can be stuck.
            actor.retired_s = time.monotonic()
            actor.end()

    def in_a_call(self, rm_id: str, timeout: float) -> Actor | None:
        """Find a former callback that is still in a call `timeout` seconds after it was retired."""
        with self._lock:
            former = [
                (actor, actor.retired_s + timeout)
                for actor in self._known
                if actor.retired_s is not None and is_callback_of(actor.address, rm_id)
            ]
        # Not under the lock: the call that is waited for may itself send something.
        for actor, due_s in former:
            actor.join(max(0.0, due_s - time.monotonic()))
            # A thread that is alive and handles nothing is between two messages: it ends by itself.
            if actor.is_alive and actor.at is not None:
                return actor
        return None

    def silence(self) -> None:
        """From here on no actor handles anything and no new one is set up."""
        with self._lock:
            self._silent = True
            for actor in self._known:
                actor.deaf = True

    def end(self, deadline: float) -> list[Actor]:
        """End every actor and wait for it; return those that did not end in time."""
        self.silence()
        # All of them first, then the waiting: they end side by side and share the deadline.
        for actor in self._known:
            actor.end()
        for actor in self._known:
            actor.join(max(0.0, deadline - time.monotonic()))
        self._dispatcher.close(max(0.0, deadline - time.monotonic()))
        left = [actor for actor in self._known if actor.is_alive]
        # A `stop_all` of the embedder must not wait for them.
        for actor in left:
            actor.give_up()
        return left

    def machines(self) -> dict[str, Machine]:
        """Those at work; callbacks are none, and one that has failed is in no state to show."""
        return {
            address: actor.holder
            for address, actor in sorted(self.by_address.items())
            if not isinstance(actor.holder, Outsider) and not actor.has_failed
        }

    def lengths(self) -> dict[str, int]:
        """Count what waits in each mailbox, or is in hand."""
        with self._lock:
            # Handled first: it never runs ahead of what was received.
            handled = {address: it.handled for address, it in self.by_address.items()}
            return {
                address: it.received - handled[address]
                for address, it in sorted(self.by_address.items())
            }

    @property
    def handled(self) -> int:
        """How many messages have been handled since the start."""
        with self._lock:
            return self._handled_by_forgotten + sum(actor.handled for actor in self._known)

    def is_settled(self) -> bool:
        """Every message that was sent has been handled.

        Handled is read first: a message counts as handled only after all it caused was counted as
        received, so equality means that nothing was under way when handled was read.
        """
        with self._lock:
            handled = sum(actor.handled for actor in self._known)
            return handled == sum(actor.received for actor in self._known)

    def _forget_ended(self) -> None:
        known: list[Actor] = []
        for actor in self._known:
            if actor.is_alive:
                known.append(actor)
            else:
                # Its count stays: the number of handled messages never falls.
                self._handled_by_forgotten += actor.handled
        self._known = known
