"""Access lists: one reading for validation and for the moment of a submit."""

import pytest

from yunikorn_actors.config import Acl, AclError

BOB = ("bob", ("dev", "ops"))
EVE = ("eve", ("sales",))


@pytest.mark.parametrize(
    ("text", "bob", "eve"),
    [
        ("", False, False),
        ("   ", False, False),
        ("*", True, True),
        (" *", True, True),
        ("bob *", True, True),
        ("bob", True, False),
        ("bob,al", True, False),
        ("bob ", True, False),
        (" dev", True, False),
        ("   dev", True, False),
        (" sales,ops", True, True),
        ("al dev", True, False),
        ("bob sales", True, True),
        ("bob  sales", True, True),
        ("bob\tsales", True, True),
        (" bob sales", True, True),
        ("dev bob", False, False),
        ("Bob", False, False),
        ("*,al", False, False),
        ("1bob,eve", False, True),
    ],
)
def test_who_is_let_in(text: str, bob: bool, eve: bool) -> None:
    acl = Acl.parse(text)
    assert [bob, eve] == [acl.allows(*BOB), acl.allows(*EVE)]


@pytest.mark.parametrize("name", ["a:b", "a#b", "a/b", "a_b", "a.b@c.d", "a-b", "_a", "robot$"])
def test_every_user_name_can_be_let_in(name: str) -> None:
    assert Acl.parse(name).allows(name, ())


@pytest.mark.parametrize("name", ["a:b", "a.b", "a-b", "_a", "oidc:team.dev"])
def test_every_group_name_can_be_let_in(name: str) -> None:
    assert Acl.parse(f" {name}").allows("bob", (name,))


@pytest.mark.parametrize("text", ["u g x", "bob, al dev", " u g x", "a  b  c"])
def test_more_than_two_parts_are_refused(text: str) -> None:
    with pytest.raises(AclError, match="multiple spaces found in ACL"):
        Acl.parse(text)
