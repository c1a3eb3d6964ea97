"""Which methods a callback answers: its own, or those of the program that it stands in for."""

from abc import ABC, abstractmethod

from yunikorn_actors import si


class StandIn(si.ResourceManagerCallback, ABC):
    """A callback that stands in for a program, and has every method whatever that answers."""

    @abstractmethod
    def answers(self, method: str) -> bool:
        """Whether the core is to ask by this method at all."""


def overrides(callback: si.ResourceManagerCallback, method: str) -> bool:
    if isinstance(callback, StandIn):
        return callback.answers(method)
    return getattr(type(callback), method) is not getattr(si.ResourceManagerCallback, method)
