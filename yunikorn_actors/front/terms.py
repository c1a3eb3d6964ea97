"""What a scheduler is made with."""

from typing import NamedTuple

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.written import OPEN_QUEUE, Queues, read_queues, shown
from yunikorn_actors.policies.registry import NO_POLICIES, Policies


class Terms(NamedTuple):
    """Fixed when a scheduler is made; every part of its front may know them."""

    queues: str
    rm_id: str
    partition: str
    grace: float

    @classmethod
    def read(
        cls,
        queues: Queues | None,
        rm_id: str,
        partition: str,
        grace: float,
        policies: Policies = NO_POLICIES,
    ) -> "Terms":
        for name, text in (("rm_id", rm_id), ("partition", partition)):
            if not isinstance(text, str):
                raise InvalidRequest(f"{name}: must be text, not {shown(text)}")
        if type(grace) not in {int, float} or not 0 <= grace < float("inf"):
            raise InvalidRequest(f"grace: must be seconds, 0 or more, not {shown(grace)}")
        text = OPEN_QUEUE if queues is None else read_queues(queues, policies)
        return cls(text, rm_id, partition, float(grace))

    @property
    def registration(self) -> si.RegisterResourceManagerRequest:
        return si.RegisterResourceManagerRequest(
            rm_id=self.rm_id, policy_group=self.rm_id, config=self.queues
        )

    @property
    def full_partition(self) -> str:
        """The partition as the core names it."""
        return f"[{self.rm_id}]{self.partition or 'default'}"
