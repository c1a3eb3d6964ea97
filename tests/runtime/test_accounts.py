"""The resolver `os`: the accounts of the system that the tests run on, and a core that asks them."""

import grp
import os
import pwd
import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.core import groups as accounts

CONFIG = """
partitions:
  - name: default
    queues: [{name: root, submitacl: '*', queues: [{name: default}]}]
    usergroupresolver: {type: os}
"""
UNKNOWN = "no-such-user"
PATIENCE_S = 30.0


def own_account() -> pwd.struct_passwd:
    return pwd.getpwuid(os.getuid())


def test_the_primary_group_comes_first() -> None:
    account = own_account()
    groups = accounts.groups_of(account.pw_name)
    assert groups is not None
    assert grp.getgrgid(account.pw_gid).gr_name == groups[0]


def test_all_groups_of_the_account_are_there_once() -> None:
    account = own_account()
    ids = os.getgrouplist(account.pw_name, account.pw_gid)
    groups = accounts.groups_of(account.pw_name) or ()
    assert len(set(ids)) == len(groups)
    assert {accounts._name(id_) for id_ in ids} == set(groups)


def test_every_account_of_the_system_can_be_asked_for() -> None:
    for account in pwd.getpwall():
        groups = accounts.groups_of(account.pw_name)
        assert groups is not None
        assert groups[0] in {str(account.pw_gid), accounts._name(account.pw_gid)}


def test_a_group_without_a_name_goes_by_its_number() -> None:
    named = {group.gr_gid for group in grp.getgrall()}
    nameless = next(id_ for id_ in range(61_000, 65_000) if id_ not in named)
    assert str(nameless) == accounts._name(nameless)


def test_who_has_no_account_is_unknown() -> None:
    assert accounts.groups_of(UNKNOWN) is None


# -- on threads


class Answers(si.ResourceManagerCallback):
    def __init__(self) -> None:
        self.told: SimpleQueue[tuple[str, str]] = SimpleQueue()

    def update_application(self, response: si.ApplicationResponse) -> None:
        for rejected in response.rejected:
            self.told.put((rejected.application_id, rejected.reason))
        for accepted in response.accepted:
            self.told.put((accepted.application_id, "accepted"))


@pytest.fixture
def core() -> Iterator[SchedulerCore]:
    with SchedulerCore() as core:
        yield core


def submit(core: SchedulerCore, answers: Answers, *new: si.AddApplicationRequest) -> dict[str, str]:
    core.update_application(si.ApplicationRequest(rm_id="rm-1", new=new))
    return dict(answers.told.get(timeout=PATIENCE_S) for _ in new)


def app(id_: str, user: str, **fields: dict[str, str]) -> si.AddApplicationRequest:
    said = si.UserGroupInformation(user=user)
    return si.AddApplicationRequest(
        application_id=id_, queue_name="root.default", ugi=said, **fields
    )


def test_the_own_user_is_known_and_an_unknown_one_is_rejected(core: SchedulerCore) -> None:
    answers = Answers()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="rm-1", config=CONFIG), answers
    )
    name = own_account().pw_name
    forced = {si.constants.APP_TAG_CREATE_FORCE: "True"}
    told = submit(core, answers, app("a", name), app("b", UNKNOWN), app("c", UNKNOWN, tags=forced))
    assert ("accepted", "accepted") == (told["a"], told["c"])
    assert told["b"].startswith(f"user resolution failed: resolver 'os' knows no user {UNKNOWN!r}")
    applications = core.state_dump()["partitions"]["[rm-1]default"]["applications"]
    assert list(accounts.groups_of(name) or ()) == applications["a"]["groups"]
    assert ["nogroup"] == applications["c"]["groups"]


def test_users_are_looked_up_on_the_thread_of_the_caller(core: SchedulerCore) -> None:
    threads: list[threading.Thread] = []

    def lookup(user: str) -> tuple[str, ...]:
        threads.append(threading.current_thread())
        return (user,)

    core.managers.resolvers._lookups["os"] = lookup
    answers = Answers()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id="rm-1", config=CONFIG), answers
    )
    assert {"a": "accepted"} == submit(core, answers, app("a", "bob"))
    assert [threading.current_thread()] == threads
