"""What a read side asks, of all partitions: each core answers, and the answers become one."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from yunikorn_actors.service.cluster.manager_channel import HostAway
from yunikorn_actors.service.cluster.portal import ClusterCore, merged
from yunikorn_actors.service.core_queries import changed
from yunikorn_actors.service.listener import Standing
from yunikorn_actors.service.node_acts import NODE_ACTS
from yunikorn_actors.values.ids import short_partition_name


class ClusterQuestions:
    def __init__(self, core: ClusterCore, standing: Standing) -> None:
        self._core = core
        self._standing = standing

    def ask(self, question: str, *arguments: str) -> Any:  # noqa: ANN401 - plain values
        special = SPECIAL.get(question)
        # Most questions are answered by merging; the others have an answer of their own.
        if special is not None:
            return special(self, *arguments)
        return merged(self._core.on_each("ask", question, *arguments))

    def _health(self) -> Any:  # noqa: ANN401 - plain values
        answer = merged(self._core.on_each("ask", "health"))
        return answer | {
            "configuration_fault": self._standing.configuration_fault,
            "read_side_fault": self._standing.read_side_fault,
        }

    def _waiting(self, partition: str) -> Any:  # noqa: ANN401 - plain values
        name = short_partition_name(partition)
        return (
            self._core.ask_host(name, "waiting", partition) if name in self._core.partitions else {}
        )

    def _causes(self, *partitions: str) -> Any:  # noqa: ANN401 - plain values
        """Each partition has a core of its own."""
        known = [it for it in partitions if short_partition_name(it) in self._core.partitions]
        found = [self._core.ask_host(short_partition_name(it), "causes", it) for it in known]
        return {name: causes for answer in found for name, causes in answer.items()}

    def _asks(self, partition: str, *about: str) -> Any:  # noqa: ANN401 - plain values
        name = short_partition_name(partition)
        known = name in self._core.partitions
        return self._core.ask_host(name, "asks", partition, *about) if known else {}

    def _why(self, application: str, key: str, partition: str) -> Any:  # noqa: ANN401 - plain values
        home = short_partition_name(partition)
        named = [home] if home in self._core.partitions else self._core.partitions
        answers = [self._core.ask_host(it, "why", application, key, partition) for it in named]
        return next((it for it in answers if "why" in it), answers[0])

    def _is_ready(self) -> str:
        try:
            return next(filter(None, self._core.on_each("ask", "is_ready")), "")
        except HostAway as error:
            return str(error)

    def _load(self, text: str, by: str) -> dict[str, Any]:
        refused = changed(self._core, lambda: self._core.administer(text, by))
        return refused or {"follows": self._standing.follows}

    def _node(self, partition: str, node: str, by: str, *, act: str) -> Any:  # noqa: ANN401 - plain values
        home = short_partition_name(partition)
        return self._shown([self._core.ask_host(home, act, partition, node, by)])

    def _unregister(self, rm_id: str, by: str) -> Any:  # noqa: ANN401 - plain values
        """A manager may be registered with some of the cores alone."""
        return self._shown(self._core.on_each("ask", "unregister", rm_id, by))

    def _shown(self, answers: list[Any]) -> Any:  # noqa: ANN401 - plain values
        """Answer when the read side of this portal has heard of it, too: hosts wait for theirs."""
        self._core.followers.catch_up()
        return next((it for it in answers if "refused" in it), {})

    def _diagnostics(self) -> Any:  # noqa: ANN401 - plain values
        """Tell what each manager says of itself, once: it says the same to every core."""
        merged: dict[str, Any] = {}
        for answer in self._core.on_each("ask", "diagnostics"):
            merged = answer | merged
        return merged

    def _trace(self) -> None:
        """Each core would have its own, and none has."""

    def _stacks(self) -> str:
        merged = zip(self._core.partitions, self._core.on_each("ask", "stacks"), strict=True)
        return "\n".join(f"partition {name}:\n{stacks}" for name, stacks in merged)


SPECIAL: Final[dict[str, Callable[..., Any]]] = {
    "health": ClusterQuestions._health,
    "waiting": ClusterQuestions._waiting,
    "causes": ClusterQuestions._causes,
    "asks": ClusterQuestions._asks,
    "why": ClusterQuestions._why,
    "is_ready": ClusterQuestions._is_ready,
    "load": ClusterQuestions._load,
    **{name: partial(ClusterQuestions._node, act=name) for name in NODE_ACTS},
    "unregister": ClusterQuestions._unregister,
    "diagnostics": ClusterQuestions._diagnostics,
    "trace": ClusterQuestions._trace,
    "stacks": ClusterQuestions._stacks,
}
"""The other answers are merged."""
