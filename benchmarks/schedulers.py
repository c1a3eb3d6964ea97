"""What several schedulers cost each other: the proposals that are refused, and the share of each.

`python -m benchmarks.schedulers` runs W3 with 1, 2, 3 and 4 schedulers, each in a process of its
own, and counts in the recording what each proposed and what was refused. It prints the share of all
proposals that was refused, the share of each scheduler in what was committed, and the processor
time of an allocation, with recording.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.load import Load
from benchmarks.run import measure
from benchmarks.workloads import WORKLOADS, Workload
from yunikorn_actors import SchedulerCore
from yunikorn_actors.messages.base import CONTEXT, Message
from yunikorn_actors.messages.scheduling import ProposalRejected, ProposeAllocations
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.values.ids import scheduler_of

HOME = Path(__file__).parent.parent


class Counts(Struct):
    """By the number of the scheduler."""

    proposed: Counter[int]
    refused: Counter[int]

    def add(self, mailbox: str, message: Message) -> None:
        if mailbox == CONTEXT and isinstance(message, ProposeAllocations):
            self.proposed.update(scheduler_of(it.proposal_id) for it in message.proposals)
        elif isinstance(message, ProposalRejected):
            self.refused[scheduler_of(message.proposal_id)] += 1

    @property
    def refused_share(self) -> float:
        return self.refused.total() / max(1, self.proposed.total())

    def shares(self) -> list[float]:
        """Of each scheduler, how much of what was committed it had proposed."""
        committed = max(1, self.proposed.total() - self.refused.total())
        return [
            (count - self.refused[number]) / committed
            for number, count in sorted(self.proposed.items())
        ]


def counts_of(deliveries: Iterable[tuple[str, Message]]) -> Counts:
    counts = Counts(Counter(), Counter())
    for mailbox, message in deliveries:
        counts.add(mailbox, message)
    return counts


def line_of(workload: Workload, schedulers: int) -> str:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        trace = Path(folder) / "run.trace"
        with SchedulerCore(driver="threads", schedulers=schedulers, trace=trace) as core:
            figures = measure(workload, Load(core))
        with TraceReader(trace) as reader:
            counts = counts_of((it.mailbox, it.message) for it in reader)
    shares = " ".join(f"{share:.3f}" for share in counts.shares())
    refused = f"{counts.refused_share:6.2%} refused"
    return f"{schedulers} schedulers  {refused}  shares {shares}  {figures['cpu_us_each']:6.1f} us"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedulers", description=__doc__)
    parser.add_argument("--workload", choices=WORKLOADS, default="W3")
    parser.add_argument("--at-most", type=int, default=4, help="schedulers; default: 4")
    parser.add_argument("--one", type=int, help="run with so many in this very process")
    options = parser.parse_args(arguments)
    if options.one:
        print(line_of(WORKLOADS[options.workload], options.one))
        return 0
    failed = 0
    for count in range(1, options.at_most + 1):
        command = [sys.executable, "-m", "benchmarks.schedulers", "--workload", options.workload]
        failed |= subprocess.run(  # noqa: S603 - ourselves
            [*command, "--one", str(count)], cwd=HOME, check=False
        ).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
