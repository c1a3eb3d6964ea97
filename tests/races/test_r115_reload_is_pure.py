"""R-115: what a reload leads to follows from the new text alone, whatever was configured before."""

from itertools import permutations
from typing import Any

from support import Lab

from yunikorn_actors.state.dump import snapshot


def _config(root: str, leaf: str) -> str:
    queues = f"queues: [{{name: parent, queues: [{{name: leaf {leaf}}}]}}]"
    return f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*' {root}, {queues}}}]}}]"


CONFIGS = {
    "plain": _config("", ""),
    "sorted": _config(
        ", properties: {application.sort.priority: disabled}",
        ", properties: {application.sort.policy: fair}",
    ),
    "inherited": _config(", properties: {priority.offset: '7', preemption.delay: 60s}", ""),
    "overridden": _config(
        ", properties: {preemption.delay: 60s}", ", properties: {preemption.delay: 90s}"
    ),
    "limited": _config(
        "",
        ", maxapplications: 3, resources: {guaranteed: {vcore: 1}, max: {vcore: 2, memory: 5}}",
    ),
}


def _configured(lab: Lab) -> dict[str, Any]:
    """What the configuration decides, as it stands in the queues."""
    kept = ("max", "guaranteed", "max_applications", "properties", "leaf", "dynamic", "state")
    return {
        path: {name: queue[name] for name in kept}
        for path, queue in snapshot(lab.state)["queues"].items()
    }


def test_from_any_to_any() -> None:
    """Settings that are gone are gone, and what was inherited from them too."""
    fresh = {name: _configured(Lab(config=text)) for name, text in CONFIGS.items()}
    differing = 0
    for before, after in permutations(CONFIGS, 2):
        lab = Lab(config=CONFIGS[before])
        lab.configure(CONFIGS[after])
        lab.settle()
        assert fresh[after] == _configured(lab), f"{before} -> {after}"
        differing += fresh[before] != fresh[after]
    assert 20 == differing, "vacuous: two of the configurations mean the same"


def test_there_and_back_again() -> None:
    for before, after in permutations(CONFIGS, 2):
        lab = Lab(config=CONFIGS[before])
        first = _configured(lab)
        lab.configure(CONFIGS[after])
        lab.configure(CONFIGS[before])
        lab.settle()
        assert first == _configured(lab)
