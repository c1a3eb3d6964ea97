"""For whom an allocation has to go, and by which rule."""

from enum import StrEnum

from msgspec import Struct


class PreemptionRule(StrEnum):
    GUARANTEE = "guarantee"
    """A queue below its guarantee takes back what another uses above its own."""
    REQUIRED_NODE = "required node"
    QUOTA = "quota"
    """A queue is above a maximum that was lowered."""


class Beneficiary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A quota has no ask."""

    rule: PreemptionRule
    queue: str
    application_id: str = ""
    key: str = ""

    def in_words(self) -> str:
        """Say who it is: the ask, or the queue where a quota is enforced, and by which rule."""
        whom = f"{self.application_id} {self.key}" if self.key else self.queue
        return f"{whom} ({self.rule.value})"
