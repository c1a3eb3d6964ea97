"""A core in a `with` block, wherever it is."""

from abc import abstractmethod
from types import TracebackType
from typing import Self


class ScopedCore:
    """Started at the beginning of the block, stopped at its end, and sound by then."""

    @abstractmethod
    def start(self) -> Self: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def check_sound(self) -> None:
        """Raise what the core has failed with, if it has."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        # What the block raised says more than what the core failed with because of it.
        if error is None:
            self.check_sound()
