"""A service on a free port; what a test leaves open is seen to."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served import Served, live, serving
from tls import Certify, certificate_in

from yunikorn_actors import SchedulerCore, enable_logs
from yunikorn_actors.service.service import Serving


@pytest.fixture(scope="module")
def town() -> Iterator[Served]:
    """Everything at once; no test changes it."""
    with serving() as served:
        live(served)
        yield served


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Start services that end with the test."""
    started: list[Serving] = []

    def start(core: SchedulerCore | None = None, **options: Any) -> Serving:
        serving = Serving(core or SchedulerCore(), {"grpc": "127.0.0.1:0"}, **options)
        started.append(serving.start())
        return serving

    yield start
    for it in started:
        it.stop()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    end = enable_logs(logging.getLogger("of the service"))
    with caplog.at_level(logging.INFO):
        yield caplog
    end()


@pytest.fixture(scope="session")
def certify(tmp_path_factory: pytest.TempPathFactory) -> Certify:
    """Make certificates, each with a key of its own."""
    return lambda: certificate_in(tmp_path_factory.mktemp("tls"))
