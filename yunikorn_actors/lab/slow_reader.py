"""A reader of event records in a run: slow, so that it misses some, and learns how many."""

from yunikorn_actors import si
from yunikorn_actors.runtime.event_streams import Feed


class SlowReader:
    def __init__(self, room: int) -> None:
        self.feed = Feed(room)
        self.taken: list[si.EventRecord] = []
        self.has_left = False

    def read(self) -> None:
        """Take all that waits."""
        while (record := self.feed.take()) is not None:
            self.taken.append(record)
