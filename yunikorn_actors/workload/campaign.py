"""Many runs: each is a pure function of plain data, wherever it is made, and is made once.

A result is kept in a file named by a digest of its job, of the version and of the log, so one that
was interrupted continues where it stopped. Results come in the order of the jobs.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from yunikorn_actors.version import VERSION
from yunikorn_actors.workload.jobs import Mapping, WorkloadError
from yunikorn_actors.workload.nodes import read_nodes
from yunikorn_actors.workload.player import Options, play
from yunikorn_actors.workload.workload import SAMPLE, Workload, open_text

ATTEMPTS: Final = 3
"""So often the runs of a process that was killed are made again."""
DASK: Final = "dask://"

Tell = Callable[[int, int], None]
Result = dict[str, Any]


class RunJob(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of a campaign, as plain data."""

    log: str
    nodes: str | None = None
    config: str = ""
    """The text of the configuration."""
    policy: str = ""
    mapping: Mapping = Mapping()
    limit: int | None = None
    scale: float = 1.0
    shake_s: float = 0.0
    """Each submit comes up to so much later, by the seed."""
    options: Options = Options()

    def workload(self) -> Workload:
        workload = Workload.read(self.log, mapping=self.mapping, limit=self.limit)
        if self.scale != 1:
            workload = workload.scaled(self.scale)
        if self.shake_s:
            workload = workload.shaken(self.shake_s, self.options.seed)
        return workload


def run(job: RunJob) -> Result:
    """Make one run: the same job has the same result. Times of the computer are left out."""
    workload = job.workload()
    nodes = read_nodes(job.nodes, workload)
    table = play(workload, nodes, job.config, policy=job.policy, options=job.options)
    summary = table.summary()
    del summary["jobs_per_cpu_s"]
    return summary


def run_all(
    jobs: Sequence[RunJob],
    *,
    executor: str = "processes",
    workers: int | None = None,
    cache: Path | None = None,
    tell: Tell = lambda *_: None,
) -> list[Result]:
    """Make all runs: `serial`, in `processes` or on the cluster `dask://HOST:PORT`."""
    results: dict[int, Result] = {}
    files = [None if cache is None else cache / f"{_digest(job)}.json" for job in jobs]
    for at, file in enumerate(files):
        if file is not None and file.exists():
            results[at] = json.loads(file.read_text(encoding="utf-8"))
    tell(len(results), len(jobs))
    left = [(at, job) for at, job in enumerate(jobs) if at not in results]
    for at, result in _made(left, executor, workers):
        # As it is read again: a run that was kept and one that was made now are equal.
        text = json.dumps(result, sort_keys=True)
        results[at] = json.loads(text)
        file = files[at]
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            written = file.with_suffix(".part")
            written.write_text(text, encoding="utf-8")
            written.replace(file)
        tell(len(results), len(jobs))
    return [results[at] for at in range(len(jobs))]


def campaign_jobs(file: Path) -> list[tuple[dict[str, Any], RunJob]]:
    """Read a campaign: of each field of a job a value or a list; all combinations are made.

    `config` names files beside it. Fields of the options stand among the others.
    """
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        lists = {
            it: value if isinstance(value, list) else [value] for it, value in document.items()
        }
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise WorkloadError(f"{file}: no campaign: {error!r:.200}") from error
    found = []
    for values in product(*lists.values()):
        named = dict(zip(lists, values, strict=True))
        fields, options = dict(named), {}
        if config := fields.get("config"):
            fields["config"] = (file.parent / config).read_text(encoding="utf-8")
        if (log := fields.get("log", "")) and not str(log).startswith(SAMPLE):
            fields["log"] = str(file.parent / log)
        for name in Options.__struct_fields__:
            if name in fields:
                options[name] = fields.pop(name)
        try:
            job = msgspec.convert({**fields, "options": options}, RunJob, strict=False)
        except msgspec.ValidationError as error:
            raise WorkloadError(f"{file}: {error}") from error
        found.append((named, job))
    return found


def _digest(job: RunJob) -> str:
    told = sha256(msgspec.json.encode((VERSION, job), order="sorted"))
    for name in (job.log, job.nodes or ""):
        if name.startswith(SAMPLE) or Path(name).is_file():
            with open_text(Path(name)) as text:
                told.update(text.read().encode())
    return told.hexdigest()[:32]


def _made(
    left: Sequence[tuple[int, RunJob]], executor: str, workers: int | None
) -> Iterator[tuple[int, Result]]:
    if executor == "serial":
        yield from ((at, run(job)) for at, job in left)
        return
    if executor.startswith(DASK):
        with _dask(executor.removeprefix(DASK)) as submit:
            yield from _as_completed(left, submit)
        return
    if executor != "processes":
        raise WorkloadError(f"executor {executor!r}: write serial, processes or dask://HOST:PORT")
    waiting = dict(left)
    for attempt in range(ATTEMPTS):
        context = get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            try:
                for at, result in _as_completed([*waiting.items()], pool.submit):
                    del waiting[at]
                    yield at, result
            except BrokenProcessPool:
                if attempt == ATTEMPTS - 1:
                    raise WorkloadError("processes of the campaign were killed too often") from None
            else:
                return


def _as_completed(
    left: Iterable[tuple[int, RunJob]], submit: Callable[..., "Future[Result]"]
) -> Iterator[tuple[int, Result]]:
    places = {submit(run, job): at for at, job in left}
    try:
        while places:
            done, _ = wait(places, return_when=FIRST_COMPLETED)
            for future in done:
                yield places.pop(future), future.result()
    finally:
        for future in places:
            future.cancel()


@contextmanager
def _dask(address: str) -> Iterator[Callable[..., "Future[Result]"]]:
    """A worker that is killed loses nothing: the cluster makes its runs again."""
    try:
        client_of: Any = import_module("distributed").Client
    except ImportError:
        raise WorkloadError(
            "Dask is an extra: pip install -e '.[dask]' in a clone of the repository"
        ) from None
    with client_of(f"tcp://{address}") as client, client.get_executor(retries=ATTEMPTS) as pool:
        yield pool.submit
