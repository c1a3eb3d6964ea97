"""Many runs: each is a pure function of plain data, wherever it is made, and is made once.

A result is kept in a file named by a digest of its job, of the version and of the log, so one that
was interrupted continues where it stopped. Results come in the order of the jobs.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import product
from os import cpu_count
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from yunikorn_actors.config.fault import why_unreadable
from yunikorn_actors.lab.fan_out import FanOut, Processes
from yunikorn_actors.lab.workers.dask_pool import DaskPool
from yunikorn_actors.policies.loading import policies_at
from yunikorn_actors.policies.registry import NO_POLICIES, InvalidPolicy, Policies
from yunikorn_actors.version import VERSION
from yunikorn_actors.workload.cluster import read_nodes, scaled_nodes
from yunikorn_actors.workload.job_stream import SAMPLE, Workload, open_text
from yunikorn_actors.workload.jobs import SECONDS_MAX, Mapping, Node, WorkloadError, check_number
from yunikorn_actors.workload.player import Options, play
from yunikorn_actors.workload.table import Table

SERIAL: Final = "serial"
PROCESSES: Final = "processes"
DASK: Final = "dask://"
SHAKE_RUNS_MAX: Final = 10.0
"""A run of a second would be one of hours, or of nothing."""

Result = dict[str, Any]
Progress = Callable[[int, int], None]
"""Hears how many runs are made, of how many."""


class RunJob(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of a campaign, as plain data."""

    log: str
    nodes: str | None = None
    config: str = ""
    """The text of the configuration."""
    policy: str = ""
    policies: str = ""
    """Where policies of your own stand, as MODULE:ATTRIBUTE: each process loads them itself."""
    mapping: Mapping = Mapping()
    limit: int | None = None
    scale: float = 1.0
    shake_s: float = 0.0
    """Each submit comes up to so much later, by the seed."""
    shake_runs: float = 0.0
    """The deviation of the logarithm by which run times become longer or shorter, by the seed."""
    options: Options = Options()

    def __post_init__(self) -> None:
        check_number("scale", self.scale, SECONDS_MAX)
        check_number("shake_s", self.shake_s, SECONDS_MAX)
        check_number("shake_runs", self.shake_runs, SHAKE_RUNS_MAX)

    def inputs(self, *, is_strict: bool = False) -> tuple[Workload, list[Node]]:
        """Read the log and the nodes."""
        workload = Workload.read(
            self.log, mapping=self.mapping, limit=self.limit, is_strict=is_strict,
            stays=self.options.stays,
        )  # fmt: skip
        nodes = read_nodes(self.nodes, workload)
        if self.scale != 1:
            workload, nodes = workload.scaled(self.scale), scaled_nodes(nodes, self.scale)
        if self.shake_s or self.shake_runs:
            workload = workload.shaken(self.shake_s, self.options.seed, self.shake_runs)
        return workload, nodes

    def play(self) -> Table:
        workload, nodes = self.inputs()
        return play(
            workload, nodes, self.config, policies=self.own_policies.given, policy=self.policy,
            options=self.options,
        )  # fmt: skip

    @property
    def own_policies(self) -> Policies:
        return policies_at(self.policies) if self.policies else NO_POLICIES


def run(job: RunJob) -> Result:
    """Make one run: the same job has the same result, wherever its log is."""
    summary = job.play().summary()
    del summary["jobs_per_cpu_s"], summary["log"]
    return summary


def run_all(
    jobs: Sequence[RunJob],
    *,
    executor: str = PROCESSES,
    workers: int | None = None,
    cache: Path | None = None,
    progress: Progress = lambda *_: None,
) -> list[Result]:
    """Make all runs: `serial`, in `processes` or on the cluster `dask://HOST:PORT`."""
    if workers is not None and workers < 1:
        raise WorkloadError(f"workers {workers}: write a number from 1 on")
    given = [_anywhere(job) for job in jobs]
    files = [None if cache is None else cache / f"{_digest(job)}.json" for job in jobs]
    results = {at: kept for at, file in enumerate(files) if file and (kept := _kept(file))}
    left = [at for at in range(len(jobs)) if at not in results]
    progress(len(results), len(jobs))
    with _each(executor, min(workers or cpu_count() or 1, len(left))) as each:
        for at, result in zip(left, each(run, [given[it] for it in left]), strict=True):
            # As it is read again: a run that was kept and one that was made now are equal.
            text = json.dumps(result, sort_keys=True)
            results[at] = json.loads(text)
            if (file := files[at]) is not None:
                _keep(text, file)
            progress(len(results), len(jobs))
    return [result for _, result in sorted(results.items())]


def _kept(file: Path) -> Result | None:
    """Return the result that is kept there; one that is damaged is made again."""
    with suppress(OSError, ValueError):
        digest, text = file.read_text(encoding="utf-8").split("\n")
        if digest == sha256(text.encode()).hexdigest():
            found: Result = json.loads(text)
            return found
    return None


def _keep(text: str, file: Path) -> None:
    """Write it at once: another campaign with this cache may write the same at this moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=file.parent, suffix=".part", delete=False) as part:
        part.write(f"{sha256(text.encode()).hexdigest()}\n{text}")
    Path(part.name).replace(file)


@contextmanager
def _each(executor: str, workers: int) -> Iterator[Callable[..., Iterable[Result]]]:
    """Give what makes runs, in order; a worker that is killed loses nothing."""
    if executor == SERIAL or not workers:
        yield map
    elif executor != PROCESSES and not executor.startswith(DASK):
        raise WorkloadError(f"executor {executor!r}: write serial, processes or dask://HOST:PORT")
    else:
        pool = Processes(workers) if executor == PROCESSES else DaskPool(executor)
        with FanOut(pool) as fan_out:
            yield fan_out.each


def _anywhere(job: RunJob) -> RunJob:
    """Name its files so that a worker finds them, which may have been started elsewhere."""
    return replace(job, log=_absolute(job.log), nodes=job.nodes and _absolute(job.nodes))


def _absolute(name: str) -> str:
    return str(Path(name).absolute()) if Path(name).is_file() else name


def _digest(job: RunJob) -> str:
    made = (VERSION, job, job.own_policies.digests if job.policies else {})
    found = sha256(msgspec.json.encode(made, order="sorted"))
    for name in (job.log, job.nodes or ""):
        if name.startswith(SAMPLE) or Path(name).is_file():
            with open_text(Path(name)) as text:
                found.update(text.read().encode())
    return found.hexdigest()[:32]


MAP: Final = "map"
"""As `--map` of a run: `queue=root.{group}`, or a mapping of them."""
_FIELDS: Final = {*RunJob.__struct_fields__, *Options.__struct_fields__, MAP} - {
    "options",
    "mapping",
}


def campaign_jobs(file: Path) -> list[tuple[dict[str, Any], RunJob]]:
    """Read a campaign: of each field of a job a value or a list; all combinations are made.

    `config` names files beside it. Fields of the options stand among the others.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{file}: {why_unreadable(error)}") from error
    try:
        written = yaml.safe_load(text)
        document = msgspec.convert(written, dict[str, Any])
        lists = [it if isinstance(it, list) else [it] for it in document.values()]
        named = [dict(zip(document, values, strict=True)) for values in product(*lists)]
        jobs = [(fields, _job(fields, file.parent)) for fields in named]
    except (ValueError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise WorkloadError(f"{file}: no campaign: {error}"[:400]) from error
    if not jobs:
        raise WorkloadError(f"{file}: no campaign: a list is empty")
    return jobs


def _job(named: dict[str, Any], folder: Path) -> RunJob:
    fields = dict(named)
    if unknown := sorted(fields.keys() - _FIELDS):
        known = ", ".join(sorted(_FIELDS))
        raise ValueError(f"{', '.join(unknown)}: no field of a run: the fields are {known}")
    if mapped := fields.pop(MAP, None):
        items = [f"{key}={it}" for key, it in mapped.items()] if isinstance(mapped, dict) else []
        fields["mapping"] = Mapping.parse(items or str(mapped).split())
    if isinstance(nodes := fields.get("nodes"), int):
        fields["nodes"] = str(nodes)
    if config := fields.get("config"):
        fields["config"] = (folder / str(config)).read_text(encoding="utf-8")
    for name in ("log", "nodes"):
        if (folder / str(fields.get(name, ""))).is_file():
            fields[name] = str(folder / fields[name])
    options = {it: fields.pop(it) for it in Options.__struct_fields__ if it in fields}
    job = msgspec.convert({**fields, "options": options}, RunJob, strict=False)
    try:
        job.own_policies  # noqa: B018 - before anything is played
    except InvalidPolicy as error:
        raise WorkloadError(str(error)) from error
    return job
