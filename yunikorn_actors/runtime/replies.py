"""Replies on their way to callers that wait for them."""

import threading
from itertools import count
from queue import Empty, SimpleQueue

from yunikorn_actors.messages.base import Message, is_reply, reply_address


class Replies:
    """One slot for each question; closing lets every caller go without an answer."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._lock = threading.RLock()
        """Between a slot that opens and the closing of all: every caller is let go."""
        self._slots: dict[str, SimpleQueue[Message | None]] = {}
        self._closed = False

    def open(self) -> str:
        # Never used again: an answer that comes too late finds no slot, and not that of another
        # call.
        address = reply_address(next(self._numbers))
        slot: SimpleQueue[Message | None] = SimpleQueue()
        with self._lock:
            self._slots[address] = slot
            # Opened after the closing had passed: it would wait for its whole time.
            if self._closed:
                slot.put(None)
        return address

    @staticmethod
    def serves(address: str) -> bool:
        """Whether it is a slot, though its caller may have given up."""
        return is_reply(address)

    def wait(self, address: str, timeout: float) -> Message | None:
        try:
            # No lock: nobody but this caller takes its slot away.
            return self._slots[address].get(timeout=timeout)
        except Empty:
            return None

    def answer(self, address: str, message: Message) -> None:
        """Hand an answer over; a caller that has given up does not get it."""
        with self._lock:
            slot = self._slots.get(address)
        if slot is not None:
            slot.put(message)

    def forget(self, address: str) -> None:
        with self._lock:
            del self._slots[address]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for slot in self._slots.values():
                slot.put(None)
