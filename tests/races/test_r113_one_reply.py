"""R-113, G25: a reload of the configuration has one reply, refused or not.

Several reloads are on their way at once, among decisions and a registration that starts anew.
"""

from collections import Counter
from collections.abc import Iterator

import pytest
import ranges
from support import APP, CONFIG, RM, Lab, limited

from yunikorn_actors import si
from yunikorn_actors.config import ExtraConfig, parse_config
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import RM_PROXY, Delivery, is_reply
from yunikorn_actors.messages.rm_events import ConfigurationRequested


class Replies:
    """Who was answered how often, and with what."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def delivered(self, _: Simulator, delivery: Delivery) -> None:
        if is_reply(delivery.mailbox):
            self.count[delivery.mailbox] += 1
            self.kinds[type(delivery.message).__name__] += 1


def _requests() -> Iterator[tuple[str, ConfigurationRequested]]:
    """Some are refused: a resource manager does not change its group by the way."""
    for number, (text, group) in enumerate(
        [(limited(9), ""), (limited(8), "another"), (CONFIG, ""), (limited(7), "another")]
    ):
        reply_to = f"reply:test-{number}"
        request = si.UpdateConfigurationRequest(rm_id=RM, policy_group=group, config=text)
        yield (
            reply_to,
            ConfigurationRequested(
                request=request,
                config=parse_config(text),
                extra=ExtraConfig.of({}),
                reply_to=reply_to,
            ),
        )


@pytest.mark.parametrize("topology", TOPOLOGIES)
@ranges.seeds(60)
def test_each_reload_has_one_reply(topology: TopologyName, seeds: range) -> None:
    kinds: Counter[str] = Counter()
    together = 0
    for seed in seeds:
        replies = Replies()
        lab = Lab(seed=seed, topology=topology, checkers=(replies,))
        lab.submit(APP)
        lab.nodes(n1=9)
        lab.settle()
        lab.ask("a", "b", "c")
        asked = []
        replies.count.clear()
        replies.kinds.clear()
        for reply_to, message in _requests():
            asked.append(reply_to)
            lab.simulator._post(RM_PROXY, message, "configuration")
        together += not replies.count
        lab.settle()
        assert dict.fromkeys(asked, 1) == replies.count
        assert ["a", "b", "c"] == lab.running()
        kinds += replies.kinds
    assert {2 * len(seeds)} == set(kinds.values()), "vacuous: none was refused, or all were"
    assert len(seeds) == together, "vacuous: they were answered one after the other"
