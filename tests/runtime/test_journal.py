"""A core with a journal that ends, however it ends, and the next one that goes on."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from journals import begin, place, truth_in, truth_of
from probes import wait_until
from support import APP, CONFIG, PARTITION, RM, Recorder, ask

from yunikorn_actors import si
from yunikorn_actors.errors import CoreFailed, JournalError
from yunikorn_actors.journal import Journal
from yunikorn_actors.journal.frames import framed
from yunikorn_actors.journal.restored_state import Entry
from yunikorn_actors.runtime.scheduler_core import SchedulerCore


def with_work(folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Run a core with two allocations and one ask that waits; return what runs, and the truth."""
    rm = Recorder()
    with SchedulerCore(journal=folder) as core:
        begin(core, rm)
        place(core, rm, "a", "b")
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("waits", 2),)))
        wait_until(core.is_settled)
        return rm.running, truth_of(core)


def last(folder: Path) -> Path:
    return max(folder.glob("entries-*"))


def test_the_next_core_has_the_same_truth_and_goes_on(tmp_path: Path) -> None:
    running, before = with_work(tmp_path)
    rm = Recorder()
    rm.running = dict(running)
    with SchedulerCore(journal=tmp_path) as core:
        assert "Paused" == core.state_dump()["managers"][RM]["state"]
        assert before == truth_of(core)
        begin(core, rm, *map(reported, running.items()))
        gone = si.AllocationRelease(application_id=APP, allocation_key="a")
        releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
        core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
        wait_until(lambda: "waits" in rm.running.values())
        [new] = set(rm.running) - set(running)
        assert new.rpartition("-")[0] not in {uuid.rpartition("-")[0] for uuid in running}
        assert [("waits", "n1")] == rm.told("new"), "what runs is not told again"


def reported(item: tuple[str, str]) -> si.Allocation:
    uuid, key = item
    return si.Allocation(
        application_id=APP,
        allocation_key=key,
        uuid=uuid,
        node_id="n1",
        resource_per_alloc=si.Resource.of({"vcore": 2}),
    )


def test_what_nobody_reports_goes_after_a_time(tmp_path: Path) -> None:
    running, _ = with_work(tmp_path)
    soon = {"rm.pausedTimeout": "200ms"}
    with SchedulerCore(journal=tmp_path) as core:
        rm = Recorder()
        rm.running = dict(running)
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG, extra_config=soon)
        core.register_resource_manager(request, rm)
        wait_until(lambda: not rm.running)
        assert {"a", "b"} == {key for key, *_ in rm.told("released")}


def test_event_ids_go_on(tmp_path: Path) -> None:
    with SchedulerCore(journal=tmp_path) as core:
        begin(core, Recorder())
        wait_until(core.is_settled)
        before = core.events()
    with SchedulerCore(journal=tmp_path) as core:
        after = core.events()
    assert before.records
    assert before.records == after.records[: len(before.records)], "at once, and all of them"


def test_a_record_that_was_not_written_whole_is_dropped(tmp_path: Path) -> None:
    _, before = with_work(tmp_path)
    with last(tmp_path).open("ab") as file:
        file.write(framed(b"a record that is cut short")[:-5])
    assert before == truth_in(tmp_path)


@pytest.mark.parametrize(
    ("place", "remedy"),
    [(4, "move the folder away"), (30, "move the folder away"), (300, "truncate")],
    ids=["length", "header", "record"],
)
def test_damage_in_the_middle_is_refused_with_its_place(
    tmp_path: Path, place: int, remedy: str
) -> None:
    with_work(tmp_path)
    file = last(tmp_path)
    data = bytearray(file.read_bytes())
    data[place] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(JournalError, match=rf"{file.name} is damaged at byte \d+ .*{remedy}"):
        SchedulerCore(journal=tmp_path).start()
    assert [file] == list(tmp_path.glob("entries-*")), "nothing was changed"


def test_a_folder_belongs_to_one_core(tmp_path: Path) -> None:
    with SchedulerCore(journal=tmp_path):
        other = SchedulerCore(journal=tmp_path)
        with pytest.raises(JournalError, match="stop that one"):
            other.start()
    with SchedulerCore(journal=tmp_path):
        pass


def test_what_comes_after_the_end_goes_into_no_other_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.close()
    other = tmp_path / "other"
    with other.open("wb"), pytest.raises(JournalError, match="it is closed; nothing more is taken"):
        journal.append(Entry(at_ns=0))
    assert b"" == other.read_bytes()


def test_on_a_full_disk_nothing_more_is_taken_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rm = Recorder()
    core = SchedulerCore(journal=tmp_path, on_failure=lambda _: None).start()
    begin(core, rm)
    wait_until(core.is_settled)
    before = truth_of(core)
    fill_the_disk(monkeypatch)
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("lost"),)))
    wait_until(lambda: core.failure is not None)
    monkeypatch.undo()
    with pytest.raises(CoreFailed, match="make room on that disk"):
        core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask("refused"),)))
    core.stop()
    assert [] == rm.told("new")
    assert before == truth_in(tmp_path)


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for ten bytes of the next record."""
    write, room = os.write, [10]

    def some(file: int, data: memoryview) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data[: room.pop()])

    monkeypatch.setattr("yunikorn_actors.journal.writing.os.write", some)


def test_what_is_no_longer_needed_goes(tmp_path: Path) -> None:
    for _ in range(4):
        with SchedulerCore(journal=tmp_path):
            pass
    names = {"entries-00000003", "entries-00000004", "snapshot-00000003", "snapshot-00000004"}
    assert names | {"lock"} == {it.name for it in tmp_path.iterdir()}


LOAD = """
import sys
from support import APP, CONFIG, RM, Recorder, ask
from yunikorn_actors import si
from yunikorn_actors.journal import journaled_context, writing
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
# New files and snapshots all the time, so that the end comes in the middle of that.
writing.ROTATE_BYTES, writing.ROTATE_SNAPSHOTS, journaled_context.TALLY_EVERY = 2**16, 0, 5
class Loud(Recorder):
    def update_allocation(self, response):
        for new in response.new:
            sys.stdout.write(f"{new.uuid} {new.allocation_key}\\n")
        sys.stdout.flush()
core = SchedulerCore(journal=sys.argv[1]).start()
core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG), Loud())
node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE,
    schedulable_resource=si.Resource.of({"vcore": 1_000_000}))
core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
app = si.AddApplicationRequest(application_id=APP, queue_name="root.default",
    ugi=si.UserGroupInformation(user="bob"))
core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
for number in range(1_000_000):
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(ask(f"k{number}"),)))
"""


def killed_under_load(folder: Path, told: int) -> dict[str, str]:
    """Kill a core after it has told so many allocations; return all that it told."""
    helpers = Path(__file__).parent.parent / "helpers"
    child = subprocess.Popen(
        [sys.executable, "-c", LOAD, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{helpers}:{Path(__file__).parents[2]}"},
    )
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(told)]
    child.send_signal(signal.SIGKILL)
    rest = child.stdout.read()
    child.stdout.close()
    assert -signal.SIGKILL == child.wait()
    # The last line may be torn, as its writer was killed.
    whole = ("".join(lines) + rest).rpartition("\n")[0]
    return dict(line.split() for line in whole.splitlines())


@pytest.mark.parametrize(
    "told", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in range(100, 120))]
)
def test_a_core_that_is_killed_has_told_nothing_that_the_next_one_does_not_know(
    tmp_path: Path, told: int
) -> None:
    amount = told if told < 100 else int(Random(told).random() * 2_000) + 1  # noqa: S311
    known = killed_under_load(tmp_path, amount)
    assert len(known) >= amount
    with SchedulerCore(journal=tmp_path) as core:
        partition = core.state_dump()["partitions"][PARTITION]
    [app] = partition["applications"].values()
    kept = {it["uuid"]: it["key"] for it in app["allocations"]}
    assert known.items() <= kept.items()
    assert partition["queues"]["root"]["allocated"] == {"vcore": len(kept)}
    assert len(set(kept.values())) == len(kept), "no ask was placed twice"


def test_a_journal_reads_back_what_it_wrote(tmp_path: Path) -> None:
    with_work(tmp_path)
    journal = Journal(tmp_path)
    try:
        assert journal.restored is not None
        names = [it.registration.rm_id for it in journal.restored.registered.managers]
        assert [RM] == names
    finally:
        journal.close()
