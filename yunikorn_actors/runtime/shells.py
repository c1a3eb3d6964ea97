"""The actors of one core, by address, and the books of their mailboxes.

Everything that is sent goes through `tell`, which says whether there was somebody to take it: a
message to an actor that has ended is dropped, on whichever thread that happens. An actor that has
ended has nothing left in its mailbox, so its books are closed and it can be forgotten.
"""

import threading
import time

import pykka

from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.messages.base import Envelope, is_callback_of
from yunikorn_actors.runtime.shell import CallbackHolder, Shell, System


class Shells:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        """Guards who is known and the silence, so that the books of all are read at one moment."""
        self._by_address: dict[str, Shell] = {}
        self._known: list[Shell] = []
        """Those with an address, and those retired whose thread may still run."""
        self._handled_by_forgotten = 0
        self._silent = False

    def start(self, system: System, address: str, holder: Machine | CallbackHolder) -> bool:
        """Start an actor and replace the one there, if any; False when no more may be started."""
        with self._lock:
            if self._silent:
                return False
            self._forget_ended()
            former = self._by_address.get(address)
            shell = Shell(system, address, holder, 0 if former is None else former.step)
            shell.launch()
            self._known.append(shell)
            self._by_address[address] = shell
        # Only now: between the two a caller would find nobody at the address, and be refused as if
        # the core had been stopped.
        if former is not None:
            former.end()
        return True

    def tell(self, address: str, envelope: Envelope) -> bool:
        """Put an envelope into a mailbox; False when there is none."""
        # No lock: a look into a dictionary is atomic, and every message of the core comes by here.
        shell = self._by_address.get(address)
        if shell is None:
            return False
        try:
            shell.actor_ref.tell(envelope)
        except pykka.ActorDeadError:
            return False
        return True

    def retire(self, address: str) -> None:
        """Nothing at this address is handled any more; a call that is under way ends by itself."""
        with self._lock:
            shell = self._by_address.pop(address, None)
        if shell is not None:
            shell.retired_s = time.monotonic()
            shell.end()

    def in_a_call(self, rm_id: str, timeout: float) -> Shell | None:
        """Find a former callback that stays in a call so long after it was retired."""
        with self._lock:
            former = [
                (shell, shell.retired_s + timeout)
                for shell in self._known
                if shell.retired_s is not None and is_callback_of(shell.address, rm_id)
            ]
        # Not under the lock: the call that is waited for may itself send something.
        for shell, due_s in former:
            shell.thread.join(max(0.0, due_s - time.monotonic()))
            # A thread that is alive and handles nothing is between two messages: it ends by itself.
            if shell.thread.is_alive() and shell.at is not None:
                return shell
        return None

    def silence(self) -> None:
        """From here on no actor handles anything and no new one is started."""
        with self._lock:
            self._silent = True
            for shell in self._known:
                shell.deaf = True

    def end(self, deadline: float) -> list[Shell]:
        """End every actor and wait for the threads; return those that did not end in time."""
        self.silence()
        # All of them first, then the waiting: they end side by side and share the deadline.
        for shell in self._known:
            shell.end()
        for shell in self._known:
            shell.thread.join(max(0.0, deadline - time.monotonic()))
        left = [shell for shell in self._known if shell.thread.is_alive()]
        for shell in left:
            # A stop_all of the embedder must not wait for an actor that we gave up.
            pykka.ActorRegistry.unregister(shell.actor_ref)
        return left

    def machines(self) -> dict[str, Machine]:
        """Those at work; callbacks are none, and one that has failed is in no state to show."""
        return {
            address: shell.holder
            for address, shell in sorted(self._by_address.items())
            if not isinstance(shell.holder, CallbackHolder) and not shell.has_failed
        }

    @property
    def handled(self) -> int:
        """How many messages have been taken out of mailboxes since the start."""
        with self._lock:
            return self._handled_by_forgotten + sum(shell.handled for shell in self._known)

    def is_settled(self) -> bool:
        """Every message that was sent has been handled.

        Handled is read first: a message counts as handled only after all it caused was counted as
        received, so equality means that nothing was under way when handled was read.
        """
        with self._lock:
            handled = sum(shell.handled for shell in self._known)
            return handled == sum(shell.mailbox.received for shell in self._known)

    def _forget_ended(self) -> None:
        known: list[Shell] = []
        for shell in self._known:
            if shell.thread.is_alive():
                known.append(shell)
            else:
                # Its books go on to count: the number of handled messages never falls.
                self._handled_by_forgotten += shell.handled
        self._known = known
