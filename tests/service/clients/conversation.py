"""A resource manager in a process of its own, compiled from one generation of the interface.

    python conversation.py former|later HOST:PORT RM FOLDER

It compiles `GENERATION.proto` into the folder, holds a whole conversation, and prints `done`. What
is not as it should be ends it with a traceback. Nothing of the server's package is imported here.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import grpc
from grpc_tools import protoc

HERE = Path(__file__).parent
PATIENCE_S = 60.0
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: work
          - name: small
            resources: {max: {vcore: 2}}
          - name: gangs
            properties: {application.sort.policy: fifo}
"""


def compiled(generation: str, folder: Path) -> tuple[ModuleType, ModuleType]:
    # Google's own files come with the compiler.
    sources = [f"-I{HERE}", f"-I{Path(protoc.__file__).parent / '_proto'}"]
    made = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main(["protoc", *sources, *made, f"{generation}.proto"]) == 0
    sys.path.insert(0, str(folder))
    return __import__(f"{generation}_pb2"), __import__(f"{generation}_pb2_grpc")


class Stream:
    """Requests out, responses kept until somebody looks for something in them."""

    def __init__(self, open_: Callable[[Iterator[Any]], Any]) -> None:
        self._requests: SimpleQueue[Any] = SimpleQueue()
        self._call = open_(iter(self._requests.get, None))
        self.heard: list[Any] = []

    def say(self, request: Any) -> None:
        self._requests.put(request)

    def hear(self) -> Any:
        response = next(self._call)
        self.heard.append(response)
        return response

    def all(self, field: str) -> list[Any]:
        return [item for response in self.heard for item in getattr(response, field)]

    def until(self, is_enough: Callable[[], Any]) -> Any:
        while not (found := is_enough()):
            self.hear()
        return found

    def close(self) -> None:
        self._call.cancel()


class Manager:
    def __init__(self, generation: str, address: str, rm: str, folder: Path) -> None:
        self.pb, services = compiled(generation, folder)
        self.is_former = generation == "former"
        self.rm = rm
        self.channel = grpc.insecure_channel(address)
        grpc.channel_ready_future(self.channel).result(PATIENCE_S)
        self.stub = services.SchedulerStub(self.channel)

    def register(self) -> None:
        self.stub.RegisterResourceManager(
            self.pb.RegisterResourceManagerRequest(rmID=self.rm, policyGroup=self.rm, config=CONFIG)
        )
        self.allocations = Stream(self._opened(self.stub.UpdateAllocation))
        self.applications = Stream(self._opened(self.stub.UpdateApplication))
        self.nodes = Stream(self._opened(self.stub.UpdateNode))

    @staticmethod
    def _opened(method: Any) -> Callable[[Iterator[Any]], Any]:
        return lambda requests: method(requests, timeout=PATIENCE_S)

    def resource(self, vcore: int) -> Any:
        return self.pb.Resource(resources={"vcore": self.pb.Quantity(value=vcore)})

    # -- what it says

    def add_nodes(self, count: int) -> None:
        create = self.pb.NodeInfo.ActionFromRM.Value("CREATE")
        nodes = [
            self.pb.NodeInfo(
                nodeID=f"node-{n}", action=create, schedulableResource=self.resource(20_000)
            )
            for n in range(count)
        ]
        self.nodes.say(self.pb.NodeRequest(rmID=self.rm, nodes=nodes))
        self.nodes.until(lambda: len(self.nodes.all("accepted")) == count)

    def add_application(self, id_: str, queue: str, **more: Any) -> None:
        user = self.pb.UserGroupInformation(user="ann")
        new = self.pb.AddApplicationRequest(applicationID=id_, queueName=queue, ugi=user, **more)
        self.applications.say(self.pb.ApplicationRequest(rmID=self.rm, new=[new]))
        # Streams are not ordered among each other: ask after this.
        accepted = self.applications.all
        self.applications.until(lambda: id_ in {it.applicationID for it in accepted("accepted")})

    def ask(self, app: str, keys: list[str], vcore: int, **more: Any) -> None:
        shared = {"applicationID": app, **more}
        if self.is_former:
            asks = [
                self.pb.AllocationAsk(
                    allocationKey=key, resourceAsk=self.resource(vcore), maxAllocations=1, **shared
                )
                for key in keys
            ]
            request = self.pb.AllocationRequest(rmID=self.rm, asks=asks)
        else:
            items = [
                self.pb.Allocation(
                    allocationKey=key, resourcePerAlloc=self.resource(vcore), **shared
                )
                for key in keys
            ]
            request = self.pb.AllocationRequest(rmID=self.rm, allocations=items)
        self.allocations.say(request)

    def release(self, app: str, key: str, kind: str) -> None:
        release = self.pb.AllocationRelease(
            applicationID=app, allocationKey=key, terminationType=kind
        )
        releases = self.pb.AllocationReleasesRequest(allocationsToRelease=[release])
        self.allocations.say(self.pb.AllocationRequest(rmID=self.rm, releases=releases))

    # -- what it hears

    def placed(self, app: str) -> dict[str, str]:
        """By key the node of each allocation, which is told once."""
        told = [it for it in self.allocations.all("new") if it.applicationID == app]
        assert [] == [key for key, n in Counter(it.allocationKey for it in told).items() if n > 1]
        return {it.allocationKey: it.nodeID for it in told}

    def until_placed(self, app: str, keys: set[str]) -> None:
        self.allocations.until(lambda: keys <= self.placed(app).keys())
        assert keys == self.placed(app).keys()

    # -- the conversation

    def many_asks(self) -> None:
        self.add_application("jobs", "root.work")
        keys = [f"job-{n}" for n in range(1_000)]
        self.ask("jobs", keys, 10)
        self.until_placed("jobs", {*keys})

    def quota(self) -> None:
        self.add_application("limited", "root.small")
        self.ask("limited", ["a", "b", "c"], 1_000)
        self.until_placed("limited", {"a", "b"})
        self.release("limited", "a", "STOPPED_BY_RM")
        self.until_placed("limited", {"a", "b", "c"})

    def rejections(self) -> None:
        self.ask("nobody", ["lost"], 10)
        field = "rejected" if self.is_former else "rejectedAllocations"
        (rejected,) = self.allocations.until(lambda: self.allocations.all(field))
        assert ("lost", "nobody") == (rejected.allocationKey, rejected.applicationID)
        assert "failed to find application" in rejected.reason.lower(), rejected.reason
        if self.is_former:
            assert all(it.UUID for it in self.allocations.all("new"))

    def gang(self) -> None:
        self.add_application("gang", "root.gangs", placeholderAsk=self.resource(2_000))
        self.ask("gang", ["ph-1", "ph-2"], 1_000, taskGroupName="workers", placeholder=True)
        self.until_placed("gang", {"ph-1", "ph-2"})
        self.ask("gang", ["real"], 1_000, taskGroupName="workers")
        (swap,) = self.allocations.until(self.swaps)
        self.release("gang", swap.allocationKey, "PLACEHOLDER_REPLACED")
        self.until_placed("gang", {"ph-1", "ph-2", "real"})

    def swaps(self) -> list[Any]:
        replaced = self.pb.TerminationType.Value("PLACEHOLDER_REPLACED")
        return [it for it in self.allocations.all("released") if it.terminationType == replaced]

    def loss_and_return(self) -> None:
        for stream in (self.allocations, self.applications, self.nodes):
            stream.close()
        self.register()
        self.add_nodes(1)
        self.add_application("jobs", "root.work")
        self.ask("jobs", ["job-0"], 10)
        self.until_placed("jobs", {"job-0"})


def main() -> None:
    generation, address, rm, folder = sys.argv[1:]
    manager = Manager(generation, address, rm, Path(folder))
    manager.register()
    manager.add_nodes(3)
    manager.many_asks()
    manager.quota()
    manager.rejections()
    manager.gang()
    manager.loss_and_return()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
