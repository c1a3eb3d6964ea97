"""The clusters that the workloads run on, as the requests that build them.

Every limit is on and none binds: each leaf may use the whole cluster. Limits cost what they cost in
service, and never decide where an ask goes.
"""

import json
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any, Literal

from msgspec import Struct, field

from yunikorn_actors import si

RM_ID = "rm-benchmark"
USER = "user"
URGENT = "app-urgent"
NODES_TO_A_REQUEST = 100
NODE = {"vcore": 16_000, "memory": 64 << 30, "pods": 110}


class Cluster(Struct, frozen=True, kw_only=True):
    rm_id: str = RM_ID
    """Whose partition it is; it is alone in its policy group."""
    nodes: int
    leaves: int
    """Below each parent; below root where there are no parents."""
    parents: int = 0
    applications: int
    entitled_part: int = 0
    """One such part of all is guaranteed to the last leaf, which preempts for it at once."""
    placeholder_ask: dict[str, int] = field(default_factory=dict)
    """What the placeholders of each application make together, where they are gangs."""
    node_order: Literal["fair", "binpacking"] = "fair"
    comes_later: bool = False
    """The load brings the nodes, with what runs on them."""
    users: int = 0
    """Each with a limit of its own at the root; with none there is one user, without a limit."""
    is_urgent: bool = False
    """Beside its leaves there is one of a higher priority, with an application."""

    def application_ids(self) -> list[str]:
        return [f"app-{number}" for number in range(self.applications)]

    def leaf_paths(self) -> list[str]:
        above = [f"root.parent-{number}" for number in range(self.parents)] or ["root"]
        return [f"{path}.leaf-{number}" for path in above for number in range(self.leaves)]

    def registration(self) -> si.RegisterResourceManagerRequest:
        partition = {
            "name": "default",
            "nodesortpolicy": {"type": self.node_order},
            "queues": [self._root()],
        }
        # JSON is YAML too.
        config = json.dumps({"partitions": [partition]})
        return si.RegisterResourceManagerRequest(
            rm_id=self.rm_id, policy_group=self.rm_id, config=config
        )

    def node_id(self, number: int) -> str:
        return f"node-{number:05d}"

    def node_requests(
        self, running_on: Callable[[int], tuple[si.Allocation, ...]] = lambda _: ()
    ) -> Iterator[si.NodeRequest]:
        capacity = si.Resource.of(NODE)
        for first in range(0, self.nodes, NODES_TO_A_REQUEST):
            numbers = range(first, min(first + NODES_TO_A_REQUEST, self.nodes))
            nodes = tuple(
                si.NodeInfo(
                    node_id=self.node_id(number),
                    action=si.ActionFromRM.CREATE,
                    schedulable_resource=capacity,
                    existing_allocations=running_on(number),
                )
                for number in numbers
            )
            yield si.NodeRequest(rm_id=self.rm_id, nodes=nodes)

    def application_requests(self) -> Iterator[si.ApplicationRequest]:
        """One request for each application, in rotation over the leaves and over the users."""
        gang = si.Resource.of(self.placeholder_ask) if self.placeholder_ask else None
        places = [*zip(self.application_ids(), cycle(self.leaf_paths()), strict=False)]
        if self.is_urgent:
            places.append((URGENT, "root.urgent"))
        for (id_, path), user in zip(places, cycle(self._users() or [USER]), strict=False):
            new = si.AddApplicationRequest(
                application_id=id_,
                queue_name=path,
                ugi=si.UserGroupInformation(user=user),
                placeholder_ask=gang,
                gang_scheduling_style="Hard" if gang else "",
            )
            yield si.ApplicationRequest(rm_id=self.rm_id, new=(new,))

    # -- the configuration

    def _root(self) -> dict[str, Any]:
        """Root, fair over what is below; the limits of users stand here, and do not bind."""
        leaves = [self._leaf(f"leaf-{number}") for number in range(self.leaves)]
        if self.entitled_part:
            whole = self.nodes * NODE["vcore"]
            entitled = whole // self.entitled_part
            leaves[0]["resources"]["guaranteed"] = {"vcore": f"{whole - entitled}m"}
            leaves[-1]["resources"]["guaranteed"] = {"vcore": f"{entitled}m"}
            leaves[-1]["properties"]["preemption.delay"] = "1ns"
        parents = [
            {"name": f"parent-{number}", "parent": True, "queues": leaves}
            for number in range(self.parents)
        ]
        below = parents or leaves
        if self.is_urgent:
            urgent = self._leaf("urgent")
            urgent["properties"]["priority.offset"] = "10"
            below.append(urgent)
        limits = [
            {"limit": user, "users": [user], "maxresources": self._whole()}
            for user in self._users()
        ]
        return {"name": "root", "submitacl": "*", "limits": limits, "queues": below}

    def _leaf(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "resources": {"max": self._whole()},
            "properties": {"application.sort.policy": "fifo"},
        }

    def _whole(self) -> dict[str, Any]:
        return {
            "vcore": f"{self.nodes * NODE['vcore']}m",
            "memory": self.nodes * NODE["memory"],
            "pods": self.nodes * NODE["pods"],
        }

    def _users(self) -> list[str]:
        return [f"user-{number}" for number in range(self.users)]
