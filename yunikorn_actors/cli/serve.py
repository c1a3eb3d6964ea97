"""`yunikorn-actors serve`: a scheduler that others reach over the network."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from yunikorn_actors.errors import ConfigError, CoreFailed, CoreStopped, JournalError
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.runtime.configuration import read_config
from yunikorn_actors.runtime.hooks import gist_of
from yunikorn_actors.runtime.logs import enable_logs
from yunikorn_actors.runtime.recorder import TraceSettings
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
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WAKES: Final = 4096
"""So many are taken together: signals that come faster are one."""
FLIGHT_BYTES: Final = 64 * 2**20
"""So much of the run a flight recorder keeps."""
LAST_S: Final = 0.1
"""For calls that end by themselves, once all has stopped."""


class Unusable(Exception):  # noqa: N818 - named like InvalidRequest
    """What an option names cannot be used."""


class News:
    """What the main thread waits for: signals, and the failure of the core.

    A pipe wakes it. Of several signals at once the kernel gives some to other threads, where none
    interrupts what this one waits for; but on whichever thread it arrives, it is written to the
    pipe.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.failure: CoreFailed | None = None
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear of signals, on the main thread."""
        handlers = {it: signal.signal(it, self._signalled) for it in SIGNALS}
        former = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(former)
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, _: object) -> None:
        self.is_over |= number != signal.SIGHUP

    def failed(self, failure: CoreFailed) -> None:
        self.failure = failure
        # Where the pipe is full it wakes as well.
        with suppress(BlockingIOError):
            os.write(self._writing, b".")

    def wait(self) -> bool:
        """Return whether it is to go on, with the file loaded again."""
        os.read(self._reading, WAKES)
        return not self.is_over and self.failure is None

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


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
        "--flight-recorder", type=Path, metavar="FILE",
        help="keep the last 64 MiB of the run in memory, for `/ws/v1/x/trace`, and write them here "
        "if the core fails",
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
    addresses = {name: getattr(options, name) for name in KINDS if getattr(options, name) != OFF}
    if not addresses:
        either = " or ".join(f"--{name}" for name in KINDS)
        print(f"nothing is to be served: give {either} an address", file=sys.stderr)
        return 2
    try:
        with ExitStack() as stack:
            news = News()
            stack.callback(news.close)
            serving = _serving(options, addresses, news, stack)
            return _serve(serving, addresses, news)
    except (ConnectionError, CoreStopped, NotInstalled, Unsafe, Unusable) as error:
        print(error, file=sys.stderr)
        return 2


def _serve(serving: Serving, addresses: dict[str, str], news: News) -> int:
    end_logs = enable_logs(sys.stderr)
    try:
        with news.heard(), serving:
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
        with _naming(config):
            core = SchedulerCore(
                config=config,
                topology=options.topology,
                journal=options.journal,
                trace=_trace(options.flight_recorder),
                on_failure=news.failed,
            )
            return Serving(core, addresses, access=access, config=config)
    if options.flight_recorder is not None:
        raise Unusable("--flight-recorder: not with --cluster, whose cores are not recorded")
    with _naming(config):
        text = "" if config is None else read_config(config)
    engine = engine_at(options.cluster, options.journal, options.topology)
    stack.callback(engine.close)
    portal = ClusterCore(text, engine.hosts)
    ask = partial(ClusterQuestions, portal)
    return Serving(portal, addresses, ask=ask, access=access, config=config)


def _trace(path: Path | None) -> TraceSettings | None:
    if path is None:
        return None
    if not path.parent.is_dir():
        raise Unusable(f"--flight-recorder {path}: there is no folder {path.parent}: make it")
    return TraceSettings(path=path, compress=True, flight_recorder_bytes=FLIGHT_BYTES)


@contextmanager
def _naming(config: Path | None) -> Iterator[None]:
    """Say of which file it is that something is wrong with it."""
    try:
        yield
    except ConfigError as error:
        raise Unusable(f"--config {config}: {error}") from None
    except OSError as error:
        raise Unusable(f"--config {config}: {error.strerror or error}") from None


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
    while news.wait():
        if serving.config is not None:
            serving.config.reload()
    if news.failure is not None:
        print(f"the core has failed, start it again: {gist_of(news.failure)}", file=sys.stderr)
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
