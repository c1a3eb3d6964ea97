"""What a scheduler did, as a workload: the life of each ask, collected from what it left behind.

Each placement is a job: submitted when its ask came, as long as it ran. What was never placed says
nothing of how long it would have run, so it is left out, and so are placeholders: members of a gang
are jobs of their own. What still runs at the end is taken as ending there.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from yunikorn_actors.workload.jobs import SECOND, Findings, Job, Node
from yunikorn_actors.workload.log_formats import write_jobs

AskKey = tuple[str, str]
"""Application and key."""
PLACEHOLDER: Final = "placeholder"
STILL_RAN: Final = "still ran at the end, taken as ending there"
NEVER_PLACED: Final = "never placed"


class _Ask(Struct):
    asked_ns: int
    number: int
    is_placeholder: bool
    fields: dict[str, Any]
    """Of its job."""
    is_placed: bool = False


class _Life(Struct):
    ask: _Ask
    key: AskKey
    began_ns: int
    fields: dict[str, Any]


class Lives:
    """Jobs, nodes and configuration of what a scheduler did."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.nodes: dict[str, Node] = {}
        self.config = ""
        self.findings = Findings()
        self.last_ns = 0
        """The latest time that was seen."""
        self._asks: dict[AskKey, _Ask] = {}
        self._running: dict[object, _Life] = {}
        """By what names a placement."""
        self._ended: list[tuple[_Life, int]] = []

    def asked(
        self, key: AskKey, at_ns: int, fields: dict[str, Any], *, is_placeholder: bool = False
    ) -> None:
        """Note an ask; `fields` are those of its job."""
        self._asks[key] = _Ask(at_ns, len(self._asks), is_placeholder, fields)

    def knows(self, key: AskKey, *, is_placeholder: bool = False) -> bool:
        """Whether there is an ask; note that it is one of a placeholder."""
        ask = self._asks.get(key)
        if ask is not None and is_placeholder:
            ask.is_placeholder = True
        return ask is not None

    def began(
        self, name: object, key: AskKey, at_ns: int, fields: dict[str, Any] | None = None
    ) -> None:
        """Note a placement; `fields` are what its ask did not say."""
        if (ask := self._asks.get(key)) is not None:
            ask.is_placed = True
            self._running[name] = _Life(ask, key, at_ns, fields or {})

    def ended(self, name: object, at_ns: int, *, is_placeholder: bool = False) -> None:
        life = self._running.pop(name, None)
        if life is not None:
            if is_placeholder or life.ask.is_placeholder:
                self.findings.leave_out(PLACEHOLDER)
            else:
                self._ended.append((life, at_ns))

    def finish(self) -> "Lives":
        """Make the jobs of what was collected; times are seconds since the first ask."""
        for name in tuple(self._running):
            self.findings.leave_out(STILL_RAN)
            self.ended(name, self.last_ns)
        for ask in self._asks.values():
            if not ask.is_placed and not ask.is_placeholder:
                self.findings.leave_out(NEVER_PLACED)
        zero_ns = min((ask.asked_ns for ask in self._asks.values()), default=0)
        jobs = (
            Job(
                id=f"{'/'.join(life.key)}#{at}",
                number=life.ask.number,
                submit_s=(life.ask.asked_ns - zero_ns) / SECOND,
                run_s=(end_ns - life.began_ns) / SECOND,
                waited_s=(life.began_ns - life.ask.asked_ns) / SECOND,
                **{**life.fields, **life.ask.fields},
            )
            for at, (life, end_ns) in enumerate(self._ended)
        )
        self.jobs = sorted(jobs, key=lambda job: job.order)
        return self

    def write(self, folder: Path) -> None:
        """Write `jobs.jsonl`, `nodes.yaml` and, if there was one, the configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        write_jobs(self.jobs, folder / "jobs.jsonl")
        (folder / "nodes.yaml").write_text("\n".join([*self._node_lines(), ""]), encoding="utf-8")
        if self.config:
            (folder / "queues.yaml").write_text(self.config, encoding="utf-8")

    def _node_lines(self) -> Iterator[str]:
        for node in self.nodes.values():
            fields = {"id": node.id, "base": node.resources, "model": node.model}
            yield "- " + msgspec.json.encode({**fields, "devices": node.devices}).decode()
