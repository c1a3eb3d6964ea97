"""Whose resolver counts, and what the door does with its word; in the simulator."""

from collections.abc import Mapping

import pytest
from support import Recorder

from yunikorn_actors import si
from yunikorn_actors.config import parse_config
from yunikorn_actors.core.groups import UNKNOWN_NS, Resolvers
from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import Topology
from yunikorn_actors.messages.base import CONTEXT

FORCE = {si.constants.APP_TAG_CREATE_FORCE: "true"}


def ugi(user: str, *groups: str) -> si.UserGroupInformation:
    return si.UserGroupInformation(user=user, groups=groups)


# -- whose word counts


def config(resolver: str, *, partitions: tuple[str, ...] = ("default",)) -> str:
    """Give the first partition this resolver, and the others none."""
    lines = ["partitions:"]
    for name in partitions:
        lines.append(f"  - name: {name}")
        lines.append("    queues: [{name: root, submitacl: '*', queues: [{name: default}]}]")
        if resolver and name == partitions[0]:
            lines.append(f"    usergroupresolver: {{type: {resolver}}}")
    return "\n".join(lines)


OS, DEFAULT = config("os"), config("")


def resolvers() -> Resolvers:
    return Resolvers({"os": {"bob": ("staff",)}.get}, lambda: 0)


def groups_of_bob(table: Resolvers, rm_id: str = "rm-1") -> tuple[str, ...]:
    return table.users_of(rm_id).resolve(ugi("bob"), forced=False).groups


def test_the_members_of_a_group_share_the_resolver_that_one_of_them_brought() -> None:
    table = resolvers()
    table.join("rm-1", "east", None)
    table.join("rm-2", "east", parse_config(OS))
    table.join("rm-3", "west", None)
    assert ("staff",) == groups_of_bob(table, "rm-1")
    assert ("staff",) == groups_of_bob(table, "rm-2")
    assert ("bob",) == groups_of_bob(table, "rm-3")


def test_the_first_partition_decides() -> None:
    table = resolvers()
    table.join("rm-1", "", parse_config(config("os", partitions=("default", "gpu"))))
    assert ("staff",) == groups_of_bob(table)


def test_an_update_changes_the_resolver_and_one_without_a_configuration_leaves_it() -> None:
    table = resolvers()
    table.join("rm-1", "", None)
    assert ("bob",) == groups_of_bob(table)
    table.bring("rm-1", parse_config(OS))
    assert ("staff",) == groups_of_bob(table)
    table.bring("rm-1", None)
    table.join("rm-1", "", None)
    assert ("staff",) == groups_of_bob(table)
    table.bring("rm-1", parse_config(DEFAULT))
    assert ("bob",) == groups_of_bob(table)


def test_the_administrator_decides_where_nobody_brought_a_configuration() -> None:
    table = resolvers()
    table.join("rm-1", "east", None)
    table.join("rm-2", "west", parse_config(DEFAULT))
    table.bring_admin(parse_config(OS))
    assert ("staff",) == groups_of_bob(table, "rm-1")
    assert ("bob",) == groups_of_bob(table, "rm-2")


def test_what_a_group_brought_goes_with_its_last_member() -> None:
    table = resolvers()
    table.join("rm-1", "east", parse_config(OS))
    table.join("rm-2", "east", None)
    table.leave("rm-1")
    assert ("staff",) == groups_of_bob(table, "rm-2")
    table.leave("rm-2")
    table.leave("rm-2")
    table.join("rm-3", "east", None)
    assert ("bob",) == groups_of_bob(table, "rm-3")


def test_who_moves_to_another_group_takes_nothing_along() -> None:
    table = resolvers()
    table.join("rm-1", "east", parse_config(OS))
    table.join("rm-1", "west", None)
    table.join("rm-2", "east", None)
    assert ("bob",) == groups_of_bob(table, "rm-1")
    assert ("bob",) == groups_of_bob(table, "rm-2")


# -- through the door, in the simulator


class Door:
    """A simulated core with one resource manager, and who its applications belong to."""

    def __init__(
        self, text: str = OS, accounts: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self.core = Simulator(
            Topology("proposing", settings=Settings(), instance="core"),
            checkers=default_checkers(),
            accounts=accounts,
        )
        self.rm = Recorder()
        self.core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id="rm-1", config=text), self.rm
        )

    def submit(self, *new: si.AddApplicationRequest) -> list[tuple[str, str]]:
        """Submit in one request; return the answers to it."""
        before = len(self.rm.told("application"))
        self.core.update_application(si.ApplicationRequest(rm_id="rm-1", new=new))
        self.core.settle()
        return [(id_, answer) for id_, answer in self.rm.told("application")[before:]]

    def owners(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        partition = self.core.machines[CONTEXT].canonical_state()["partitions"]["[rm-1]default"]
        return {
            id_: (app["user"], tuple(app["groups"]))
            for id_, app in partition["applications"].items()
        }


def app(
    id_: str, user: str = "", *groups: str, tags: dict[str, str] | None = None, partition: str = ""
) -> si.AddApplicationRequest:
    return si.AddApplicationRequest(
        application_id=id_,
        queue_name="root.default",
        partition_name=partition,
        ugi=ugi(user, *groups),
        tags=tags or {},
    )


UNKNOWN_KIM = (
    "user resolution failed: resolver 'os' knows no user 'kim'; make the user known to it, or send "
    "the groups with the application"
)


def test_an_unknown_user_is_rejected_and_the_others_of_the_request_go_on() -> None:
    door = Door(accounts={"bob": ("staff", "wheel")})
    answers = door.submit(app("a", "bob"), app("b", "kim"), app("c", "kim", "guests"))
    assert [("a", "accepted"), ("c", "accepted"), ("b", UNKNOWN_KIM)] == answers
    assert {"a": ("bob", ("staff", "wheel")), "c": ("kim", ("guests",))} == door.owners()


def test_nobody_is_known_unless_the_accounts_are_given() -> None:
    assert [("a", UNKNOWN_KIM)] == Door().submit(app("a", "kim"))


def test_a_rejected_application_is_remembered_as_rejected() -> None:
    door = Door()
    door.submit(app("a", "kim"))
    partition = door.core.machines[CONTEXT].partitions["[rm-1]default"]
    assert ["Rejected"] == [item.state.value for item in partition.state.finished.values()]


def test_one_id_twice_in_a_request_with_a_known_and_an_unknown_user() -> None:
    door = Door(accounts={"bob": ("staff",)})
    answers = door.submit(app("a", "kim"), app("a", "bob"))
    assert [("a", "accepted"), ("a", UNKNOWN_KIM)] == answers
    assert {"a": ("bob", ("staff",))} == door.owners()


def test_a_partition_that_does_not_exist_is_found_before_the_user() -> None:
    answers = Door().submit(app("a", "kim", partition="gpu"))
    assert [
        ("a", "Failed to add application a to partition [rm-1]gpu, partition doesn't exist")
    ] == answers


def test_the_user_is_found_before_the_duplicate() -> None:
    door = Door(accounts={"bob": ("staff",)})
    door.submit(app("a", "bob"))
    assert [("a", UNKNOWN_KIM)] == door.submit(app("a", "kim"))
    ((_, reason),) = door.submit(app("a", "bob"))
    assert reason.endswith("but application already existed")


def test_without_a_user_or_with_a_bad_name_an_application_is_rejected() -> None:
    bare = si.AddApplicationRequest(application_id="c", queue_name="root.default")
    answers = dict(Door(DEFAULT).submit(app("a"), app("b", "no one"), bare))
    assert ["a", "b", "c"] == sorted(answers)
    assert answers["a"].startswith("empty user cannot resolve")
    assert answers["b"].startswith("invalid username, it contains invalid characters")
    assert answers["c"].startswith("empty user cannot resolve")


def test_a_forced_application_is_taken_whoever_it_belongs_to() -> None:
    door = Door()
    bare = si.AddApplicationRequest(application_id="c", queue_name="root.default", tags=FORCE)
    door.submit(app("a", "kim", tags=FORCE), app("b", tags=FORCE), bare)
    assert {
        "a": ("kim", ("nogroup",)),
        "b": ("nobody", ("nogroup",)),
        "c": ("nobody", ("nogroup",)),
    } == door.owners()


def test_an_account_that_comes_later_is_seen_after_half_a_minute_of_virtual_time() -> None:
    accounts: dict[str, tuple[str, ...]] = {}
    door = Door(accounts=accounts)
    assert [("a", UNKNOWN_KIM)] == door.submit(app("a", "kim"))
    accounts["kim"] = ("staff",)
    door.core.advance(UNKNOWN_NS - 1)
    ((_, reason),) = door.submit(app("a", "kim"))
    assert reason.startswith("user resolution failed, cached data returned")
    door.core.advance(1)
    assert [("a", "accepted")] == door.submit(app("a", "kim"))


def test_the_configuration_in_force_names_the_resolver() -> None:
    door = Door(DEFAULT, accounts={"bob": ("staff",)})
    door.submit(app("a", "bob"))
    door.core.update_configuration(si.UpdateConfigurationRequest(rm_id="rm-1", config=OS))
    door.submit(app("b", "bob"))
    assert {"a": ("bob", ("bob",)), "b": ("bob", ("staff",))} == door.owners()


def test_the_resolver_of_the_administrator_and_of_another_member() -> None:
    door = Door("", accounts={"bob": ("staff",)})
    door.core.update_configuration(si.UpdateConfigurationRequest(config=OS))
    door.submit(app("a", "bob"))
    door.core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="rm-2", config=DEFAULT), Recorder()
    )
    door.submit(app("b", "bob"))
    assert {"a": ("bob", ("staff",)), "b": ("bob", ("bob",))} == door.owners()


def test_a_refused_configuration_names_no_resolver() -> None:
    door = Door(DEFAULT, accounts={"bob": ("staff",)})
    other = si.RegisterResourceManagerRequest(rm_id="rm-2", config=OS)
    with pytest.raises(ValueError, match="policy group"):
        door.core.register_resource_manager(other, Recorder())
    door.submit(app("a", "bob"))
    assert {"a": ("bob", ("bob",))} == door.owners()
