"""A core with the parts that others reach it by: started together, stopped in order."""

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from yunikorn_actors.errors import ConfigError, CoreError
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.runtime.core_arguments import read_file
from yunikorn_actors.service.access_policy import Access
from yunikorn_actors.service.followed_file import FollowedFile, check_no_pipe
from yunikorn_actors.service.listener import Part, Questions, Site, Standing
from yunikorn_actors.service.log_lines import LogStyle
from yunikorn_actors.service.served import ServedCore
from yunikorn_actors.service.tokens import CurrentTokens, FollowedTokens, Tokens
from yunikorn_actors.version import extra_command


class ConfigFile(FollowedFile[str]):
    """The administrator's configuration file, followed while the service runs.

    One that is refused leaves the former configuration in force. The log and an event say so, and
    health checks show it until the file is good again.
    """

    def __init__(self, path: Path, core: ServedCore, standing: Standing) -> None:
        super().__init__("yunikorn-actors-config", read_file(path))
        self._path = path
        self._core = core
        self._standing = standing
        standing.follows = str(path)

    def _read(self) -> str:
        check_no_pipe(self._path)
        return read_file(self._path)

    def _take(self, found: str) -> None:
        try:
            self._core.administer(found, f"the file {self._path}")
        except (ConfigError, CoreError) as error:
            self._refuse(str(error))
        else:
            logger.info("configuration {} loaded", self._path)
            # Whatever the fault was, it is over.
            self._standing.tell("")

    def _refuse(self, reason: str) -> None:
        # Once for each reason: the file is looked at again and again.
        if reason != self._standing.configuration_fault:
            logger.warning("configuration {} refused, the former one stays: {}", self._path, reason)
            self._standing.tell(reason)


STOP_S: Final = 4.8
"""From the signal to the end of everything; a process is to be gone within 5 seconds."""


class Kind(NamedTuple):
    """A part that there can be; its module has `make(site) -> Part`."""

    title: str
    """As people call it."""
    default: str
    """Where it listens by default."""
    module: str
    """Imported when it is wanted, as others need not have installed what it needs."""
    extra: str
    """Which extra of the package has to be installed for it."""
    package: str = ""
    """What of that the module leaves to another process to import."""


KINDS: Final[dict[str, Kind]] = {
    "rest": Kind(
        "REST", "127.0.0.1:9080", "yunikorn_actors.service.rest.process", "service", "aiohttp"
    ),
    "grpc": Kind("gRPC", "127.0.0.1:3333", "yunikorn_actors.service.rpc.grpc_server", "grpc"),
}
"""By the name of the option that says where it listens."""


class NotInstalled(Exception):
    """What a part needs is not installed."""


class Serving:
    """A core in service: use it in a `with` block."""

    def __init__(
        self,
        core: ServedCore,
        addresses: Mapping[str, str],
        *,
        ask: Callable[[Standing], Questions] | None = None,
        access: Access | None = None,
        config: Path | None = None,
        logs: LogStyle | None = None,
    ) -> None:
        """`addresses`: where each part listens, by its name in `KINDS`.

        `config` and the files of tokens are followed.

        `logs` says how a process beside this one writes its log, if it is to write any.

        `ask` makes who answers a read side, where the core is not in this process.
        """
        self.core: Final = core
        self.access: Final = access or Access()
        self.access.check(addresses)
        self.standing: Final = Standing()
        self._logs = logs
        self.tokens: Final = CurrentTokens(Tokens(self.access.token, self.access.read_token))
        self._questions = None if ask is None else ask(self.standing)
        self._followed: Final[list[FollowedFile[Any]]] = []
        if config is not None:
            self._followed.append(ConfigFile(config, core, self.standing))
        if self.access.files.can_be_followed():
            self._followed.append(FollowedTokens(self.access.files, self.tokens))
        # Made before the core starts, so that they hear its first message.
        self.parts: Final[dict[str, Part]] = {
            name: maker_of(KINDS[name])(self._site(address)) for name, address in addresses.items()
        }
        self._started: list[Part] = []

    def _site(self, address: str) -> Site:
        access = self.access
        return Site(
            self.core,
            address,
            self.standing,
            access.tls,
            self.tokens,
            access.names,
            access.cors,
            self._questions,
            self._logs,
        )

    def start(self) -> Self:
        """Start the core, then its parts; where one cannot start nothing is left running."""
        try:
            # First: a core that has a journal would change it, and say that it has started.
            for part in self.parts.values():
                part.listen()
            self.core.start()
            for part in self.parts.values():
                # First: one that is interrupted while it starts has to be stopped as well.
                self._started.append(part)
                part.start()
            for file in self._followed:
                file.start()
        except BaseException:
            self.stop()
            raise
        return self

    def reload(self) -> None:
        """Read again soon what stands in files: the configuration and the tokens."""
        for file in self._followed:
            file.reload()

    def stop(self, timeout: float = STOP_S) -> None:
        """Stop what has started, the last first, within this time."""
        deadline = time.monotonic() + timeout
        for file in self._followed:
            file.stop(_left(deadline))
        while self._started:
            self._started.pop().stop(_left(deadline))
        # Those as well that were never started, as they have taken their addresses.
        for part in self.parts.values():
            part.close()
        self.core.stop(_left(deadline))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _not_installed(kind: Kind, package: str) -> NotInstalled:
    return NotInstalled(
        f"{kind.title} needs the package {package}, which is not installed; "
        f"{extra_command(kind.extra)}"
    )


def maker_of(kind: Kind) -> Callable[[Site], Part]:
    """Find what makes a part of this kind."""
    if kind.package and find_spec(kind.package) is None:
        raise _not_installed(kind, kind.package)
    try:
        module = import_module(kind.module)
    except ModuleNotFoundError as error:
        raise _not_installed(kind, str(error.name)) from error
    make: Callable[[Site], Part] = module.make
    return make


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
