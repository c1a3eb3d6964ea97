"""The stations of one core, by address, and the books of what each has received and handled.

Everything that is sent goes through `tell`, which says whether there was somebody to take it: a
message to a station that has ended is dropped, on whichever thread that happens. A station that has
ended has nothing left to handle, so its books are closed and it can be forgotten.

Callbacks are actors, each with a thread. So are the machines, unless there is a line: then they
stand in that.
"""

import threading
import time

from yunikorn_actors.machines.machine import Machine
from yunikorn_actors.messages.base import Envelope, is_callback_of
from yunikorn_actors.runtime.line import Line, StationInLine
from yunikorn_actors.runtime.shell import Outsider, Promises, Station, System, shell_class


class Shells:
    def __init__(self, line: Line | None = None) -> None:
        self._line = line
        self._lock = threading.RLock()
        """Guards who is known and the silence, so that the books of all are read at one moment."""
        self._by_address: dict[str, Station] = {}
        self._known: list[Station] = []
        """Those with an address, and those retired that may still be at work."""
        self._handled_by_forgotten = 0
        self._silent = False

    def start(self, system: System, address: str, holder: Machine | Outsider) -> bool:
        """Set a station up and replace the one there, if any; False when no more may be set up."""
        with self._lock:
            if self._silent:
                return False
            self._forget_ended()
            former = self._by_address.get(address)
            step = 0 if former is None else former.step
            station: Station
            if self._line is None or isinstance(holder, Outsider):
                station = shell_class(address, holder)(system, address, holder, step)
            else:
                station = StationInLine(self._line, system, address, holder, step)
            station.launch()
            self._known.append(station)
            self._by_address[address] = station
        # Only now: between the two a caller would find nobody at the address, and be refused as if
        # the core had been stopped.
        if former is not None:
            former.end()
        return True

    def tell(self, address: str, envelope: Envelope, promises: Promises | None = None) -> bool:
        """Leave an envelope at an address; False when nobody takes it there."""
        # No lock: a look into a dictionary is atomic, and every message of the core comes by here.
        station = self._by_address.get(address)
        return station is not None and station.put(envelope, promises)

    def retire(self, address: str) -> None:
        """Nothing at this address is handled any more; a call that is under way ends by itself."""
        with self._lock:
            station = self._by_address.pop(address, None)
        if station is not None:
            station.retired_s = time.monotonic()
            station.end()

    def in_a_call(self, rm_id: str, timeout: float) -> Station | None:
        """Find a former callback that stays in a call so long after it was retired."""
        with self._lock:
            former = [
                (station, station.retired_s + timeout)
                for station in self._known
                if station.retired_s is not None and is_callback_of(station.address, rm_id)
            ]
        # Not under the lock: the call that is waited for may itself send something.
        for station, due_s in former:
            station.join(max(0.0, due_s - time.monotonic()))
            # A thread that is alive and handles nothing is between two messages: it ends by itself.
            if station.is_alive and station.at is not None:
                return station
        return None

    def silence(self) -> None:
        """From here on no station handles anything and no new one is set up."""
        with self._lock:
            self._silent = True
            for station in self._known:
                station.deaf = True

    def end(self, deadline: float) -> list[Station]:
        """End every station and wait for it; return those that did not end in time."""
        self.silence()
        # All of them first, then the waiting: they end side by side and share the deadline.
        for station in self._known:
            station.end()
        for station in self._known:
            station.join(max(0.0, deadline - time.monotonic()))
        left = [station for station in self._known if station.is_alive]
        for station in left:
            station.give_up()
        return left

    def machines(self) -> dict[str, Machine]:
        """Those at work; callbacks are none, and one that has failed is in no state to show."""
        return {
            address: station.holder
            for address, station in sorted(self._by_address.items())
            if not isinstance(station.holder, Outsider) and not station.has_failed
        }

    def lengths(self) -> dict[str, int]:
        """Count what waits in each mailbox, or is in hand."""
        with self._lock:
            # Handled first: it never runs ahead of what was received.
            handled = {address: it.handled for address, it in self._by_address.items()}
            return {
                address: it.received - handled[address]
                for address, it in sorted(self._by_address.items())
            }

    @property
    def handled(self) -> int:
        """How many messages have been handled since the start."""
        with self._lock:
            return self._handled_by_forgotten + sum(station.handled for station in self._known)

    def is_settled(self) -> bool:
        """Every message that was sent has been handled.

        Handled is read first: a message counts as handled only after all it caused was counted as
        received, so equality means that nothing was under way when handled was read.
        """
        with self._lock:
            handled = sum(station.handled for station in self._known)
            return handled == sum(station.received for station in self._known)

    def _forget_ended(self) -> None:
        known: list[Station] = []
        for station in self._known:
            if station.is_alive:
                known.append(station)
            else:
                # Its books go on to count: the number of handled messages never falls.
                self._handled_by_forgotten += station.handled
        self._known = known
