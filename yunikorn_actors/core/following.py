"""Followers of a core: read sides, which receive every fact, and streams of events."""

from contextlib import nullcontext, suppress
from itertools import count

from yunikorn_actors import si
from yunikorn_actors.core.driver import Driver, Follower
from yunikorn_actors.errors import CoreFailed, CoreStopped, NoReply, Refused
from yunikorn_actors.messages.base import (
    CONTEXT,
    EVENT_PUBLISHER,
    follower_address,
    stream_address,
)
from yunikorn_actors.messages.followers import CatchUpRequested, FollowEnded, FollowRequested
from yunikorn_actors.messages.queries import EventStreamLeft, EventStreamRequested


class Followers:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._numbers = count(1)
        self.following: dict[str, None] = {}
        """The addresses of the followers that last."""

    def follow(self, follower: Follower, *, lasts: bool = True) -> str:
        """Send everything that becomes true to this follower; return its address.

        A change waits until each follower that lasts has received it. Nothing waits for the others:
        one may go before it has answered.
        """
        address = follower_address(next(self._numbers))
        # Open before the request: the snapshot is sent before the answer, and must find its
        # receiver.
        self._driver.open_follower(address, follower)
        try:
            self._driver.await_acceptance(
                CONTEXT,
                lambda reply_to: FollowRequested(follower=address, reply_to=reply_to),
                "follow",
            )
        except BaseException:
            # It may be accepted after this: a caller gives up that has no reply in time.
            self.unfollow(address)
            raise
        if lasts:
            self.keep(address)
        return address

    def keep(self, address: str) -> None:
        """Count a follower among those that last: changes wait until it has received them."""
        self.following[address] = None

    def catch_up(self, *addresses: str) -> None:
        """Wait until these followers, or all that last, have received what is true now.

        One that leaves in the meantime does not answer. If all were asked for, the caller does not
        learn of it: its change is done all the same.
        """
        for follower in addresses or tuple(self.following):
            # Asked of Context, which passes the question to the follower behind all facts before
            # it.
            with nullcontext() if addresses else suppress(NoReply):
                self._driver.ask(
                    CONTEXT,
                    lambda reply_to, it=follower: CatchUpRequested(follower=it, reply_to=reply_to),  # type: ignore[misc]
                    self._driver.name("catch-up"),
                )

    def unfollow(self, address: str) -> None:
        """Tell it no more; a core that has stopped or failed has closed it already."""
        self.following.pop(address, None)
        # Closed first: nothing reaches it any more, whether or not Context still sends.
        self._driver.close_callback(address)
        with suppress(CoreStopped, CoreFailed), self._driver.afterwards:
            self._driver.post(CONTEXT, FollowEnded(follower=address), self._driver.name("follow"))

    def open_stream(self, hearer: si.ResourceManagerCallback, history: int) -> str:
        """Have every record delivered to this callback; return its address."""
        address = stream_address(next(self._numbers))
        self._driver.open_callback(address, hearer)
        try:
            self._driver.await_acceptance(
                EVENT_PUBLISHER,
                lambda reply_to: EventStreamRequested(
                    hearer=address, history=history, reply_to=reply_to
                ),
                "stream",
            )
        except Refused:
            # Refused: the publisher has not taken it, so there is nothing to leave.
            self._driver.close_callback(address)
            raise
        except BaseException:
            # As above.
            self.close_stream(address)
            raise
        return address

    def close_stream(self, address: str) -> None:
        """Close a stream; a core that has stopped or failed has closed it already."""
        self._driver.close_callback(address)
        with suppress(CoreStopped, CoreFailed), self._driver.afterwards:
            self._driver.post(
                EVENT_PUBLISHER, EventStreamLeft(hearer=address), self._driver.name("stream")
            )
