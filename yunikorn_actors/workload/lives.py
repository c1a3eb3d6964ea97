"""What a scheduler did, as a workload: the life of each ask, collected from what it left behind.

Each placement is a job: submitted when its ask came, as long as it ran. What still waits at the end
stood in line and had nodes reserved, so it is a job as well: as long as others of its application
or queue ran on the average. What was withdrawn before is left out. The members of a gang of one
size are one job, which runs until the last of them has ended; their placeholders are part of it.
What still runs at the end is taken as ending there.
"""

from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.workload.jobs import SECOND, Findings, Job, Node
from yunikorn_actors.workload.log_formats import write_jobs

AskKey = tuple[str, str]
"""Application and key."""
PLACEHOLDER: Final = "placeholder"
STILL_RAN: Final = "still ran at the end, taken as ending there"
CUT_SHORT: Final = "preempted, or on a node that left: taken as ending there"
STILL_WAITED: Final = "still waited at the end, taken as running as long as others do"
WITHDRAWN: Final = "withdrawn before it was placed"
NEVER_PLACED: Final = "never placed, as nothing else was: nothing says how long it would run"


class _Ask(Struct):
    asked_ns: int
    number: int
    is_placeholder: bool
    fields: dict[str, Any]
    """Of its job."""
    repeats: int
    """So many allocations it is for."""
    placed: int = 0


class _Life(Struct):
    ask: _Ask
    key: AskKey
    began_ns: int
    is_member: bool = False
    """Whether it took the place of a placeholder."""


class Ended(NamedTuple):
    """A placement that has ended."""

    life: _Life
    end_ns: int
    is_cut_short: bool


class Lives:
    """Jobs, nodes and configuration of what a scheduler did."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.nodes: list[Node] = []
        """One that has changed stands there several times, one after the other."""
        self.config = ""
        self.findings = Findings()
        self.last_ns = 0
        """The latest time that was seen."""
        self._nodes: dict[str, tuple[int, Node]] = {}
        """Those that are there now, and since when they are so."""
        self._nodes_before: list[tuple[int, int, Node]] = []
        """From when to when one was there, or was so."""
        self.owners: dict[str, dict[str, Any]] = {}
        """Of applications the user, the group and the queue; they may become known late."""
        self._asks: dict[AskKey, _Ask] = {}
        self._asked = 0
        self._running: dict[object, _Life] = {}
        """By what names a placement."""
        self._ended: list[Ended] = []

    def asked(self, key: AskKey, at_ns: int, fields: dict[str, Any], *,
              repeats: int = 1, is_placeholder: bool = False) -> None:  # fmt: skip
        """Note an ask; `fields` are those of its job."""
        self._asks[key] = _Ask(at_ns, self._asked, is_placeholder, fields, repeats)
        self._asked += 1

    def replaced(self, key: AskKey, fields: dict[str, Any], repeats: int) -> None:
        """Note that an ask came again: it is as old as before."""
        if (ask := self._asks.get(key)) is not None:
            ask.fields, ask.repeats = fields, repeats

    def withdrawn(self, key: AskKey) -> None:
        """Note that what still waits of an ask is gone."""
        ask = self._asks.get(key)
        if ask is not None and ask.repeats > ask.placed:
            ask.repeats = ask.placed
            if not ask.is_placeholder:
                self.findings.leave_out(WITHDRAWN)

    def knows(self, key: AskKey, *, is_placeholder: bool = False) -> bool:
        """Whether there is an ask; note that it is one of a placeholder."""
        ask = self._asks.get(key)
        if ask is not None and is_placeholder:
            ask.is_placeholder = True
        return ask is not None

    def began(self, name: object, key: AskKey, at_ns: int, *, is_member: bool = False) -> None:
        if (ask := self._asks.get(key)) is not None:
            ask.placed += 1
            self._running[name] = _Life(ask, key, at_ns, is_member)

    def ended(self, name: object, at_ns: int, *, is_placeholder: bool = False,
              is_cut_short: bool = False) -> None:  # fmt: skip
        life = self._running.pop(name, None)
        if life is not None:
            if is_placeholder or life.ask.is_placeholder:
                self.findings.leave_out(PLACEHOLDER)
            else:
                self._ended.append(Ended(life, at_ns, is_cut_short))
                if is_cut_short:
                    self.findings.assumed[CUT_SHORT] += 1

    def everything_ends(self) -> None:
        """Note that the scheduler has begun anew: at the latest time that was seen."""
        for name in tuple(self._running):
            self.ended(name, self.last_ns)
        for id_ in tuple(self._nodes):
            self.node_left(id_, self.last_ns)

    def node(self, node: Node, at_ns: int) -> None:
        """Note a node that comes, or becomes another."""
        self.node_left(node.id, at_ns)
        self._nodes[node.id] = at_ns, node

    def node_now(self, id_: str) -> Node | None:
        return self._nodes[id_][1] if id_ in self._nodes else None

    def node_left(self, id_: str, at_ns: int) -> None:
        if (there := self._nodes.pop(id_, None)) is not None:
            self._nodes_before.append((there[0], at_ns, there[1]))

    def finish(self) -> "Lives":
        """Make the jobs of what was collected; times are seconds since the first ask."""
        for name in tuple(self._running):
            self.findings.assumed[STILL_RAN] += 1
            self.ended(name, self.last_ns)
        zero_ns = min((ask.asked_ns for ask in self._asks.values()), default=0)
        asks = self._placeholder_asks()
        gangs = self._gangs(asks)
        placed = [
            self._job(life.key, life.ask, at, (end_ns - life.began_ns) / SECOND, zero_ns,
                      waited_s=(life.began_ns - life.ask.asked_ns) / SECOND,
                      is_cut_short=is_cut_short)
            for at, (life, end_ns, is_cut_short) in enumerate(self._ended)
            if not (life.is_member and life.key[0] in gangs)
        ]  # fmt: skip
        for number, (id_, members) in enumerate(gangs.items(), len(self._ended)):
            placed.append(self._gang(id_, members, asks[id_], number, zero_ns))
        number = len(self._ended) + len(gangs)
        jobs = [*placed, *self._still_waiting(placed, number, zero_ns)]
        self.jobs = sorted(jobs, key=lambda job: job.order)
        spans = [(since, None, node) for since, node in self._nodes.values()] + [
            it for it in self._nodes_before if it[1] > max(it[0], zero_ns)
        ]
        self.nodes = [
            replace(
                node, from_s=max(0, since - zero_ns) / SECOND,
                until_s=None if until is None else (until - zero_ns) / SECOND,
            )
            for since, until, node in sorted(spans, key=itemgetter(0))
        ]  # fmt: skip
        return self

    def _job(self, key: AskKey, ask: _Ask, number: int, run_s: float, zero_ns: int,
             waited_s: float | None = None, *, is_cut_short: bool = False) -> Job:  # fmt: skip
        return Job(
            is_cut_short=is_cut_short,
            id=f"{'/'.join(key)}#{number}", number=ask.number, run_s=run_s, waited_s=waited_s,
            submit_s=(ask.asked_ns - zero_ns) / SECOND, application=key[0],
            **{**self.owners.get(key[0], {}), **ask.fields},
        )  # fmt: skip

    def _gangs(self, asks: dict[str, list[_Ask]]) -> dict[str, list[Ended]]:
        """Return the members of each gang that came together and is of one size.

        Where a recording begins between its placeholders and its members, nothing says how many
        there were.
        """
        members: dict[str, list[Ended]] = {}
        for it in self._ended:
            if it.life.is_member:
                members.setdefault(it.life.key[0], []).append(it)
        return {
            id_: found
            for id_, found in members.items()
            if id_ in asks
            and len(found) == sum(ask.repeats for ask in asks[id_])
            and len({repr(ask.fields["size"]) for ask in asks[id_]}) == 1
            and min(it.end_ns for it in found) > max(it.life.began_ns for it in found)
        }

    def _placeholder_asks(self) -> dict[str, list[_Ask]]:
        found: dict[str, list[_Ask]] = {}
        for (id_, _), ask in self._asks.items():
            if ask.is_placeholder:
                found.setdefault(id_, []).append(ask)
        return found

    def _gang(self, id_: str, members: list[Ended], asks: list[_Ask], number: int,
              zero_ns: int) -> Job:  # fmt: skip
        """It was asked for with its placeholders, and ran once the last member had begun."""
        first = min(asks, key=lambda ask: ask.number)
        began_ns = max(it.life.began_ns for it in members)
        job = self._job(
            (id_, "gang"), first, number, (max(it.end_ns for it in members) - began_ns) / SECOND,
            zero_ns, (began_ns - first.asked_ns) / SECOND,
        )  # fmt: skip
        return replace(job, tasks=len(members), gang=True, application="")

    def _still_waiting(self, placed: list[Job], number: int, zero_ns: int) -> Iterator[Job]:
        """Yield a job for each repeat that waits, from this number on."""
        runs: Counter[str] = Counter()
        run_s: dict[str, float] = {}
        for job in placed:
            for whose in (f"application {job.application}", f"queue {job.queue}", ""):
                runs[whose] += 1
                run_s[whose] = run_s.get(whose, 0.0) + job.run_s
        for key, ask in self._asks.items():
            queue = self.owners.get(key[0], {}).get("queue", "")
            others = (f"application {key[0]}", f"queue {queue}", "")
            known = next((whose for whose in others if whose in runs), None)
            for _ in range(0 if ask.is_placeholder else ask.repeats - ask.placed):
                if known is None:
                    self.findings.leave_out(NEVER_PLACED)
                    continue
                self.findings.assumed[STILL_WAITED] += 1
                yield self._job(key, ask, number, run_s[known] / runs[known], zero_ns)
                number += 1

    def write(self, folder: Path) -> None:
        """Write `jobs.jsonl`, `nodes.yaml` and, if there was one, the configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        write_jobs(self.jobs, folder / "jobs.jsonl")
        (folder / "nodes.yaml").write_text("\n".join([*self._node_lines(), ""]), encoding="utf-8")
        if self.config:
            (folder / "queues.yaml").write_text(self.config, encoding="utf-8")

    def _node_lines(self) -> Iterator[str]:
        for node in self.nodes:
            fields = {"id": node.id, "base": node.resources, "devices": node.devices}
            rest = {"model": "", "from_s": 0.0, "until_s": None, "drained": False}
            given = {it: value for it, n in rest.items() if (value := getattr(node, it)) != n}
            yield "- " + msgspec.json.encode(fields | given).decode()
