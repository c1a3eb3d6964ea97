"""Who follows a core: read sides, which receive all that becomes true, and streams of events."""

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

        Nobody else waits for one that does not last: it may go before it has answered.
        """
        address = follower_address(next(self._numbers))
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
        """From now on it lasts: changes wait until it has received them."""
        self.following[address] = None

    def catch_up(self, *addresses: str) -> None:
        """Wait until these followers, or all that last, have received what is true now.

        Of all one that goes meanwhile does not answer. The change is done all the same, so the
        caller does not learn of that.
        """
        for follower in addresses or tuple(self.following):
            with nullcontext() if addresses else suppress(NoReply):
                self._driver.ask(
                    CONTEXT,
                    lambda reply_to, it=follower: CatchUpRequested(follower=it, reply_to=reply_to),  # type: ignore[misc]
                    self._driver.name("catch-up"),
                )

    def unfollow(self, address: str) -> None:
        """Tell it no more; a core that has stopped or failed has closed it already."""
        self.following.pop(address, None)
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
