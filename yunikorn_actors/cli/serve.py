"""`yunikorn-actors serve`: a scheduler that others reach over the network."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from yunikorn_actors.errors import ConfigError, CoreFailed, CoreStopped, JournalError
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.runtime.configuration import read_config
from yunikorn_actors.runtime.logs import enable_logs
from yunikorn_actors.runtime.system import SchedulerCore
from yunikorn_actors.service.cluster.core import ClusterCore
from yunikorn_actors.service.cluster.local import ENVIRONMENT, LOCAL
from yunikorn_actors.service.cluster.questions import ClusterQuestions
from yunikorn_actors.service.safety import Access, Unsafe, is_local, read_tls, read_token
from yunikorn_actors.service.serving import KINDS, NotInstalled, Serving

if TYPE_CHECKING:
    from yunikorn_actors.service.cluster.engine import RayEngine

OFF: Final = "off"
OURS: Final = "yunikorn-actors-"
"""So the names of our threads begin."""
LAST_S: Final = 0.1
"""For calls that end by themselves, once all has stopped."""
News = SimpleQueue[int | CoreFailed]
"""What the main thread waits for: a signal, or the failure of the core."""


FILES: Final = {
    "config": "the administrator's configuration; it is loaded again when it changes",
    "tls-cert": "a certificate with its chain (PEM)",
    "tls-key": "the key of the certificate (PEM)",
    "token-file": "holds what callers have to show, as `authorization: Bearer TOKEN`",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, kind in KINDS.items():
        parser.add_argument(
            f"--{name}", metavar="ADDR", default=kind.default,
            help=f"where {kind.title} listens, or `{OFF}` (default: %(default)s)",
        )  # fmt: skip
    for name, help_ in FILES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=help_)
    parser.add_argument(
        "--journal", type=_folder, metavar="DIR",
        help="where decisions are kept, so that the service goes on after a crash",
    )  # fmt: skip
    parser.add_argument(
        "--cluster", metavar="ADDR",
        help="a Ray cluster whose actors are the cores, one for each partition: its address, "
        "`ray://...` from outside of it, or `local` for one of its own",
    )  # fmt: skip
    parser.add_argument(
        "--name", action="append", default=[], metavar="NAME",
        help="a name by which it may be called over HTTP, beside its addresses and localhost",
    )  # fmt: skip
    parser.add_argument(
        "--no-cors", action="store_true", help="let no page of another origin read REST"
    )
    parser.add_argument(
        "--insecure", action="store_true",
        help="listen where others are without TLS and token",
    )  # fmt: skip
    parser.add_argument(
        "--topology", choices=("proposing", "fused"), default="proposing",
        help="where planning happens (default: %(default)s)",
    )  # fmt: skip


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("give a folder, it is empty; `.` is the present one")
    return Path(text)


def run(options: argparse.Namespace) -> int:
    news: News = SimpleQueue()
    addresses = {name: getattr(options, name) for name in KINDS if getattr(options, name) != OFF}
    if not addresses:
        either = " or ".join(f"--{name}" for name in KINDS)
        print(f"nothing is to be served: give {either} an address", file=sys.stderr)
        return 2
    try:
        with ExitStack() as stack:
            serving = _serving(options, addresses, news, stack)
            return _serve(serving, addresses, news)
    except (ConfigError, ConnectionError, CoreStopped, NotInstalled, Unsafe) as error:
        print(error, file=sys.stderr)
        return 2


def _serve(serving: Serving, addresses: dict[str, str], news: News) -> int:
    end_logs = enable_logs(sys.stderr)
    try:
        with signals(news), serving:
            _introduce(serving, addresses)
            status = _wait(serving, news)
        _let_go(status)
        return status  # noqa: TRY300 - of all that was tried
    except JournalError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        end_logs()


def _serving(
    options: argparse.Namespace, addresses: dict[str, str], news: News, stack: ExitStack
) -> Serving:
    """Make what is to be served; what the stack has is closed at the end."""
    access, config = access_of(options), options.config
    access.check(addresses)
    if options.cluster is None:
        core = SchedulerCore(
            config=config,
            topology=options.topology,
            journal=options.journal,
            on_failure=news.put,
        )
        return Serving(core, addresses, access=access, config=config)
    text = "" if config is None else read_config(config)
    engine = engine_at(options.cluster, options.journal, options.topology)
    stack.callback(engine.close)
    portal = ClusterCore(text, engine.hosts)
    ask = partial(ClusterQuestions, portal)
    return Serving(portal, addresses, ask=ask, access=access, config=config)


def engine_at(address: str, journal: Path | None, topology: TopologyName) -> "RayEngine":
    if address == LOCAL:
        os.environ.update(ENVIRONMENT)
    try:
        from yunikorn_actors.service.cluster.engine import (  # noqa: PLC0415 - what the extra brings
            RayEngine,
        )
    except ModuleNotFoundError as error:
        raise NotInstalled(
            f"--cluster needs the package {error.name}, which is not installed: "
            "pip install 'yunikorn-actors[ray]'"
        ) from error
    return RayEngine(address, journal, topology)


def access_of(options: argparse.Namespace) -> Access:
    tls = read_tls(options.tls_cert, options.tls_key)
    return Access(
        tls,
        read_token(options.token_file),
        options.insecure,
        names=tuple(options.name),
        cors=not options.no_cors,
    )


def _introduce(serving: Serving, addresses: dict[str, str]) -> None:
    for name, part in serving.parts.items():
        print(f"{KINDS[name].title} on {part.address}")
    if serving.access.insecure and not all(map(is_local, addresses.values())):
        print("open to everybody who reaches it, as --insecure says", file=sys.stderr)
    print("ready; Ctrl-C or SIGTERM ends it", flush=True)


def _wait(serving: Serving, news: News) -> int:
    while (said := news.get()) == signal.SIGHUP:
        if serving.config is not None:
            serving.config.reload()
    if isinstance(said, CoreFailed):
        print(f"the core has failed, start it again: {said}", file=sys.stderr)
        return 1
    return 0


def _let_go(status: int) -> None:
    """End, even while a call is under way: nothing interrupts the reading of a large configuration.

    Nobody waits for what it returns, and the core takes nothing from it any more.
    """
    until = time.monotonic() + LAST_S
    # Python itself would wait for the threads of a pool, daemons or not.
    calls = [it for it in threading.enumerate() if it.name.startswith(OURS)]
    for call in calls:
        call.join(max(0.0, until - time.monotonic()))
    if any(call.is_alive() for call in calls):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


@contextmanager
def signals(news: News) -> Iterator[None]:
    """Hear of signals: the queue is one that a handler may use."""
    heard = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    former = {it: signal.signal(it, lambda number, _: news.put(number)) for it in heard}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
