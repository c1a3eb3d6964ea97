"""No answer of REST or of a follower has a secret that a resource manager has sent or raised."""

import http.client
from contextlib import closing

from planted import PLANTED as FORMS
from planted import shows_one
from probes import wait_until
from served import ANN, RM, Served, serving

from yunikorn_actors import si

SECRET = "hunter2"  # noqa: S105 - it is to be found nowhere
P = "/ws/v1/partition/default"
PATHS = (
    "/ws/v1/clusters", "/ws/v1/partitions", f"{P}/queues", f"{P}/queue/root.prod?subtree",
    f"{P}/queue/root.prod/applications", f"{P}/queue/root.prod/applications/active",
    f"{P}/applications/active", f"{P}/applications/rejected", f"{P}/application/app-1",
    f"{P}/nodes", f"{P}/node/s1", f"{P}/usage/users", "/ws/v1/events/batch",
    "/ws/v1/scheduler/healthcheck", "/ws/v1/config", "/ws/v1/metrics", "/debug/fullstatedump",
    "/ws/v1/x/live", "/ws/v1/x/state",
)  # fmt: skip
PLANTED = {
    "api-token": SECRET,
    "spark.hadoop.fs.s3a.secret.key": SECRET,
    "note": f"run with --password {SECRET}",
    "url": f"https://bob:{SECRET}@host/",
    **{f"note-{number}": text for number, text in enumerate(FORMS)},
    **dict.fromkeys(FORMS, "key"),
}


class Raising(si.ResourceManagerCallback):
    def predicates(self, args: si.PredicatesArgs) -> str | None:
        if args.allocation_key == "waits":
            raise RuntimeError(f"token={SECRET}")
        return None

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None: ...

    def get_state_dump(self) -> str:
        raise RuntimeError(f"pwd={SECRET}")


def plant(served: Served) -> None:
    served.core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id=RM, config=CONFIG, extra_config=PLANTED, build_info=PLANTED
        ),
        Raising(),
    )
    node = si.NodeInfo(
        node_id="s1", action=si.ActionFromRM.CREATE, attributes=PLANTED,
        schedulable_resource=si.Resource.of({"vcore": 8_000, "memory": 10**12}),
    )  # fmt: skip
    served.nodes(node)
    served.application("app-1", "root.prod", ANN, tags=PLANTED)
    served.application("app-2", f"root.prod.token={SECRET}", ANN, tags=PLANTED)
    asks = tuple(
        si.AllocationAsk(
            application_id="app-1", allocation_key=key, tags=PLANTED,
            resource_ask=si.Resource.of({"vcore": 1}),
        )
        for key in ("runs", "waits")
    )  # fmt: skip
    foreign = si.Allocation(
        allocation_key="f", allocation_tags={**PLANTED, "foreign": "static"}, node_id="s1",
        resource_per_alloc=si.Resource.of({"vcore": 1}),
    )  # fmt: skip
    served.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks, allocations=(foreign,)))
    served.settle()
    wait_until(lambda: "the predicate raised" in str(served.core.explain("app-1", "waits")))
    served.settle()


CONFIG = f"""
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: prod
      properties: {{registry.password: {SECRET}}}
"""


def test_no_answer_has_a_secret() -> None:
    with serving() as served:
        plant(served)
        answered = 0
        for path in PATHS:
            response = served.ask(path)
            assert SECRET.encode() not in response.body, path
            assert not shows_one(response.body.decode()), path
            answered += response.status == 200
        assert answered > len(PATHS) - 4, "vacuous"
        connection = http.client.HTTPConnection(served.part.address, timeout=60)
        with closing(connection):
            connection.request("GET", "/ws/v1/events/stream?count=1000")
            stream = connection.getresponse()
            told = b""
            while b"token=" not in told:
                told = stream.readline()
        assert SECRET.encode() not in told
        assert b"allocationTags" in served.ask(f"{P}/nodes").body
        assert b"api-token" in served.ask(f"{P}/nodes").body
