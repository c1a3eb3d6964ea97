"""Functions under leases on the workers of a Dask cluster."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from looping import on_a_loop
from probes import wait_until

from yunikorn_actors import AsyncScheduler, InvalidRequest, LeaseLost, Scheduler, StillWaiting

distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> None:
    """Dask keeps threads for each function that is new to it."""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None,
            memory_limit="1GiB",
        ) as cluster,
        distributed.Client(cluster) as made,
    ):  # fmt: skip
        yield made


def where() -> str:
    address: str = distributed.get_worker().address
    return address


def fail() -> None:
    raise LookupError("no such")


def wait_for(path: Path) -> str:
    path.with_suffix(".new").write_text(where())
    path.with_suffix(".new").rename(path.with_suffix(".begun"))
    while not path.exists():
        time.sleep(0.005)
    return where()


def test_functions_run_on_the_worker_whose_node_has_the_room(client: Any, tmp_path: Path) -> None:
    with Scheduler() as s:
        s.add_node("elsewhere", vcore=100)
        with s.executor(user="ann", workers=client) as pool:
            addresses = {*client.scheduler_info(n_workers=-1)["workers"]}
            assert {*s.nodes} == addresses | {"elsewhere"}
            files = [tmp_path / str(n) for n in range(5)]
            futures = [pool.submit(wait_for, it) for it in files]
            wait_until(lambda: 4 == len(list(tmp_path.glob("*.begun"))))
            time.sleep(0.1)
            assert 4 == len(list(tmp_path.glob("*.begun")))
            homes = {it.key: it.node_id for it in pool.application.leases}
            assert 4 == len(homes)
            for path in files:
                path.write_text("")
            ran = {f"call-{n}": it.result(PATIENCE_S) for n, it in enumerate(futures, 1)}
            assert homes == {key: ran[key] for key in homes}
            assert addresses == {*homes.values()}
            with pytest.raises(LookupError, match="no such"):
                pool.submit(fail).result(PATIENCE_S)
            assert [1, 4, 9] == list(pool.map(pow, [1, 2, 3], [2, 2, 2], timeout=PATIENCE_S))


def test_an_error_in_the_block_withdraws_what_waits(client: Any) -> None:
    def block(s: Scheduler) -> None:
        with s.executor(user="ann", vcore=9, workers=client) as pool:
            futures.append(pool.submit(pow, 2, 2))
            futures[0].result(0.2)

    futures: list[Any] = []
    with Scheduler() as s:
        with pytest.raises(StillWaiting, match="still waits"):
            block(s)
        assert futures[0].cancelled()


def test_a_worker_that_goes_takes_its_functions_with_it(client: Any, tmp_path: Path) -> None:
    with Scheduler() as s, s.executor(user="ann", vcore=2, workers=client) as pool:
        future = pool.submit(wait_for, tmp_path / "a")
        wait_until((tmp_path / "a.begun").exists)
        s.remove_node((tmp_path / "a.begun").read_text())
        with pytest.raises(LeaseLost, match="Removed"):
            future.result(PATIENCE_S)
        (tmp_path / "a").write_text("")
        assert pool.submit(where).result(PATIENCE_S) in s.nodes


@on_a_loop
async def test_an_event_loop_awaits_functions_on_dask(client: Any) -> None:
    async with AsyncScheduler() as s, s.executor(user="ann", workers=client) as pool:
        assert {*s.nodes} == {*client.scheduler_info(n_workers=-1)["workers"]}
        found = await asyncio.gather(*[pool.submit(where) for _ in range(8)])
        assert {*found} <= {*s.nodes}
        assert 1024 == await asyncio.get_running_loop().run_in_executor(pool, pow, 2, 10)
        with pytest.raises(LookupError, match="no such"):
            await pool.submit(fail)


def test_what_is_of_this_computer_is_not_for_dask(client: Any) -> None:
    with Scheduler() as s, pytest.raises(InvalidRequest, match="leave that out for Dask"):
        s.executor("processes", user="ann", workers=client)
