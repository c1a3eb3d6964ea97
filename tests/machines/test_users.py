"""Groups of users: the table of what may be said, how long it holds, and what is told of it."""

import pytest

from yunikorn_actors import si
from yunikorn_actors.core.groups import (
    KNOWN_NS,
    SWEEP_NS,
    UNKNOWN_NS,
    UserGroups,
    UserResolutionFailed,
    own_group,
)
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.tag_lookup import is_forced

FORCE = {si.constants.APP_TAG_CREATE_FORCE: "true"}


def ugi(user: str, *groups: str) -> si.UserGroupInformation:
    return si.UserGroupInformation(user=user, groups=groups)


class Directory:
    """Knows some users, remembers who was asked for, and shows the time it is set to."""

    def __init__(self, **groups: tuple[str, ...]) -> None:
        self.groups = groups
        self.asked: list[str] = []
        self.now_ns = 0

    def lookup(self, user: str) -> tuple[str, ...] | None:
        self.asked.append(user)
        return self.groups.get(user)

    def users(self) -> UserGroups:
        return UserGroups("os", self.lookup, lambda: self.now_ns)


# -- one user

RESOLVED = {
    "looked up": (ugi("bob"), False, ugi("bob", "staff", "wheel")),
    "in no group": (ugi("eve"), False, ugi("eve")),
    "said": (ugi("bob", "guests"), False, ugi("bob", "guests")),
    "said of an unknown user": (ugi("kim", "guests"), False, ugi("kim", "guests")),
    "odd name": (ugi("_a:b#c/d.e@f-g$", "x"), False, ugi("_a:b#c/d.e@f-g$", "x")),
    "forced and known": (ugi("bob"), True, ugi("bob", "staff", "wheel")),
    "forced and unknown": (ugi("kim"), True, ugi("kim", "nogroup")),
    "forced and said": (ugi("kim", "guests"), True, ugi("kim", "guests")),
    "forced without a user": (ugi(""), True, ugi("nobody", "nogroup")),
    "forced, groups without a user": (ugi("", "guests"), True, ugi("nobody", "nogroup")),
    "forced with nothing at all": (None, True, ugi("nobody", "nogroup")),
}
REFUSED = {
    "unknown": (ugi("kim"), False, "user resolution failed: resolver 'os' knows no user 'kim'"),
    "no user": (ugi(""), False, "empty user cannot resolve"),
    "groups without a user": (ugi("", "guests"), False, "empty user cannot resolve"),
    "nothing at all": (None, False, "empty user cannot resolve"),
    "bad name": (
        ugi("no one"),
        False,
        "invalid username, it contains invalid characters: 'no one'",
    ),
    "bad name with groups": (
        ugi("1st", "x"),
        False,
        "invalid username, it contains invalid characters: '1st'",
    ),
    "bad name, forced": (
        ugi("a b"),
        True,
        "invalid username, it contains invalid characters: 'a b'",
    ),
}


@pytest.mark.parametrize("case", RESOLVED)
def test_resolved(case: str) -> None:
    said, forced, expected = RESOLVED[case]
    users = Directory(bob=("staff", "wheel"), eve=()).users()
    assert expected == users.resolve(said, forced=forced)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    said, forced, expected = REFUSED[case]
    users = Directory().users()
    with pytest.raises(UserResolutionFailed) as caught:
        users.resolve(said, forced=forced)
    assert str(caught.value).startswith(expected)


def test_what_was_refused_before_any_lookup_is_not_remembered() -> None:
    directory = Directory()
    users = directory.users()
    for said in (None, ugi(""), ugi("no one", "x")):
        with pytest.raises(UserResolutionFailed):
            users.resolve(said, forced=False)
    assert ([], 0) == (directory.asked, len(users))


def test_the_default_resolver_knows_one_group_named_like_the_user() -> None:
    users = UserGroups("", own_group, lambda: 0)
    assert ugi("bob", "bob") == users.resolve(ugi("bob"), forced=False)


@pytest.mark.parametrize(
    ("text", "forced"),
    [(text, True) for text in ("1", "t", "T", "true", "True", "TRUE")]
    + [(text, False) for text in ("", "0", "f", "false", "False", "yes", "tRUE", " true")],
)
def test_forced(text: str, forced: bool) -> None:
    assert forced is is_forced({si.constants.APP_TAG_CREATE_FORCE: text})
    assert is_forced({}) is False


def test_the_name_of_the_tag_ignores_case() -> None:
    """The entry asked for the exact name and placement did not: one took what the other refused."""
    assert is_forced({si.constants.APP_TAG_CREATE_FORCE.upper(): "true"})


# -- the time that an entry lasts


def test_r125_a_change_of_groups_is_seen_when_the_entry_has_outlived_its_time() -> None:
    directory = Directory(bob=("staff",))
    users = directory.users()
    assert ugi("bob", "staff") == users.resolve(ugi("bob"), forced=False)
    directory.groups["bob"] = ("guests",)
    directory.now_ns = KNOWN_NS - 1
    assert ugi("bob", "staff") == users.resolve(ugi("bob"), forced=False)
    assert ["bob"] == directory.asked
    directory.now_ns = KNOWN_NS
    assert ugi("bob", "guests") == users.resolve(ugi("bob"), forced=False)
    assert ["bob", "bob"] == directory.asked


def test_r125_a_clock_that_starts_late_makes_no_difference() -> None:
    directory = Directory(bob=("staff",))
    directory.now_ns = 1_767_225_600 * SECOND
    users = directory.users()
    users.resolve(ugi("bob"), forced=False)
    directory.now_ns += KNOWN_NS
    users.resolve(ugi("bob"), forced=False)
    assert ["bob", "bob"] == directory.asked


def test_using_an_entry_does_not_make_it_last_longer() -> None:
    directory = Directory(bob=("staff",))
    users = directory.users()
    for second in range(0, 301, 100):
        directory.now_ns = second * SECOND
        users.resolve(ugi("bob"), forced=False)
    assert ["bob", "bob"] == directory.asked


def test_an_unknown_user_stays_unknown_until_the_entry_has_outlived_its_time() -> None:
    directory = Directory()
    users = directory.users()
    with pytest.raises(UserResolutionFailed, match="knows no user 'bob'"):
        users.resolve(ugi("bob"), forced=False)
    directory.groups["bob"] = ("staff",)
    directory.now_ns = UNKNOWN_NS - 1
    with pytest.raises(UserResolutionFailed, match="user resolution failed, cached data returned"):
        users.resolve(ugi("bob"), forced=False)
    assert ["bob"] == directory.asked
    directory.now_ns = UNKNOWN_NS
    assert ugi("bob", "staff") == users.resolve(ugi("bob"), forced=False)


def test_a_forced_application_does_not_make_an_unknown_user_known() -> None:
    directory = Directory()
    users = directory.users()
    assert ugi("bob", "nogroup") == users.resolve(ugi("bob"), forced=True)
    assert ugi("bob", "nogroup") == users.resolve(ugi("bob"), forced=True)
    with pytest.raises(UserResolutionFailed, match="cached"):
        users.resolve(ugi("bob"), forced=False)
    assert ["bob"] == directory.asked


def test_groups_that_a_request_said_hold_for_the_next_one() -> None:
    directory = Directory(bob=("staff",))
    users = directory.users()
    users.resolve(ugi("bob", "guests"), forced=False)
    assert ugi("bob", "guests") == users.resolve(ugi("bob"), forced=False)
    assert [] == directory.asked
    directory.now_ns = KNOWN_NS
    assert ugi("bob", "staff") == users.resolve(ugi("bob"), forced=False)


def test_groups_that_a_request_said_end_the_time_of_being_unknown() -> None:
    users = Directory().users()
    assert ugi("bob", "nogroup") == users.resolve(ugi("bob"), forced=True)
    users.resolve(ugi("bob", "guests"), forced=False)
    assert ugi("bob", "guests") == users.resolve(ugi("bob"), forced=False)


def test_a_thousand_users_are_forgotten_again() -> None:
    directory = Directory(**{f"known{number}": ("staff",) for number in range(500)})
    users = directory.users()
    for number in range(500):
        users.resolve(ugi(f"known{number}"), forced=False)
        users.resolve(ugi(f"unknown{number}"), forced=True)
    assert 1_000 == len(users)
    directory.now_ns = SWEEP_NS
    users.resolve(ugi("late", "x"), forced=False)
    assert 501 == len(users)
    directory.now_ns = KNOWN_NS
    users.resolve(ugi("later", "x"), forced=False)
    assert 2 == len(users)


def test_users_who_come_and_go_for_ever_do_not_pile_up() -> None:
    directory = Directory()
    users = directory.users()
    most = 0
    for number in range(20_000):
        directory.now_ns = number * SECOND
        users.resolve(ugi(f"user{number}"), forced=True)
        most = max(most, len(users))
    assert (UNKNOWN_NS + SWEEP_NS) // SECOND >= most
