"""Answers on their way to callers that wait for them."""

import threading
from itertools import count
from queue import Empty, SimpleQueue

from yunikorn_actors.messages.base import Message


class Replies:
    """One slot for each question; closing lets every caller go without an answer."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._slots: dict[str, SimpleQueue[Message | None]] = {}
        self._closed = False

    def open(self) -> str:
        with self._lock:
            address = f"reply:{next(self._numbers)}"
            self._slots[address] = SimpleQueue()
            if self._closed:
                self._slots[address].put(None)
        return address

    def wait(self, address: str, timeout: float) -> Message | None:
        try:
            return self._slots[address].get(timeout=timeout)
        except Empty:
            return None

    def answer(self, address: str, message: Message) -> None:
        with self._lock:
            slot = self._slots.get(address)
        if slot is not None:
            slot.put(message)

    def forget(self, address: str) -> None:
        with self._lock:
            self._slots.pop(address, None)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for slot in self._slots.values():
                slot.put(None)
