"""The configuration of a replay: a given one, or one that takes every queue; with a policy."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from yunikorn_actors import si
from yunikorn_actors.workload.jobs import WorkloadError

ORDER: Final = "application.sort.policy"
_OPEN: Final = """
partitions:
- name: default
  placementrules:
  - {name: provided, create: true}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: default
"""


def configured(text: str, policy: str) -> str:
    """Return the configuration under which a replay runs; without a text it takes every queue.

    A policy is that of every leaf, whatever is written there.
    """
    if not policy:
        return text or _OPEN
    try:
        document: Any = yaml.safe_load(text or _OPEN)
        for _, queue in _queues(document):
            is_parent = queue.get("parent") or queue.get("queues") or queue["name"] == "root"
            place = queue.setdefault("childtemplate", {}) if is_parent else queue
            place.setdefault("properties", {})[ORDER] = policy
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise WorkloadError(f"the configuration cannot be read: {error!r:.200}") from error
    return yaml.safe_dump(document, sort_keys=False)


def guaranteed_shares(text: str, kind: str, total: int) -> dict[str, float]:
    """Return the share of a resource of the cluster that each queue is guaranteed, by full name."""
    found: dict[str, float] = {}
    for path, queue in _queues(yaml.safe_load(text or _OPEN)):
        amount = ((queue.get("resources") or {}).get("guaranteed") or {}).get(kind)
        if amount is not None and total:
            found[path] = si.Resource.parse({kind: amount}).amounts()[kind] / total
    return found


def _queues(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any YAML
    """Yield every queue that is written, with its full name; those above before those below."""
    left = [("", queue) for part in document["partitions"] for queue in part.get("queues") or ()]
    while left:
        above, queue = left.pop(0)
        path = f"{above}{queue['name']}"
        yield path, queue
        left += [(f"{path}.", below) for below in queue.get("queues") or ()]
