"""What looks like a secret is masked wherever it stands, and nothing else is."""

import json
from collections.abc import Callable

import pytest
import yaml
from planted import HIDDEN, KEYS, PLANTED, WRITTEN, harmless, shows_one

from yunikorn_actors.values.masking import HINTS, masked

WRAPS: tuple[Callable[[str], str], ...] = (
    str, repr, json.dumps, "it raised ({})".format, "before\n{}\nafter".format, "x, {}, y".format,
    lambda text: json.dumps({"note": text, "id": 1}), lambda text: repr(RuntimeError(text)),
)  # fmt: skip


@pytest.mark.parametrize("text", PLANTED)
def test_planted_secrets_are_nowhere(text: str) -> None:
    for wrapped in (wrap(text) for wrap in WRAPS):
        assert shows_one(wrapped), "vacuous"
        said = masked(wrapped)
        assert not shows_one(said), said
        assert said == masked(said), "masked once is enough"


def test_there_are_many_forms() -> None:
    assert len(PLANTED) > 50
    assert len({*PLANTED}) == len(PLANTED)


def test_harmless_texts_stay_as_they_are() -> None:
    assert [] == [text for text in harmless(200) if masked(text) != text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("secret:\n  inner: x y\n  b:\n    - c\nother: kept\n", "secret:\n  inner: ***\n  b:\n    - ***\nother: kept\n"),
        ("- secret:\n    a: x\n  b: kept", "- secret:\n    a: ***\n  b: kept"),
        ("passwords:\n- a\n- b\nkept: k", "passwords:\n- ***\n- ***\nkept: k"),
        ("secret:\nkept: k", "secret:\nkept: k"),
        ("token:\nabc", "token:\n***"),
        ("secret: {user: a, l: [b:c, 'x}y']} kept", "secret: {user: ***, l: [***, ***]} kept"),
        ('{"secret": {"a": "x"}, "k": "kept"}', '{"secret": {"a": ***}, "k": "kept"}'),
        ("root.secret: {state: 'Active'}", "root.secret: {state: 'Active'}"),
        ("tokens: [512, 1024]", "tokens: [512, 1024]"),
        ("secret: [a", "secret: [***"),
        ("see http://h:80/a@b", "see http://h:80/a@b"),
    ],
)  # fmt: skip
def test_maps_and_lists_under_the_name_of_a_secret_keep_their_keys(
    text: str, expected: str
) -> None:
    assert masked(text) == expected
    assert masked(expected) == expected


def test_what_is_covered_in_a_configuration_can_still_be_read() -> None:
    """The replay of a recording reads it, and comes to the same only if its shape is the same."""
    text = "a: 1\nsecret:\n  user: bob\n  more: {x: [1, two], y: 'three'}\nb: 2\n"
    shape = yaml.safe_load(masked(text, lambda _: "masked:12ab"))
    covered = "masked:12ab"
    assert shape == {
        "a": 1, "b": 2,
        "secret": {"user": covered, "more": {"x": [covered, covered], "y": covered}},
    }  # fmt: skip


@pytest.mark.parametrize(
    "part", ["secret:\n  ", "secret: {", "secret: {'", 'secret: ["\\', "token:\n a b  ", "ghp_", "://a:b/c"]
)  # fmt: skip
@pytest.mark.timeout(60)
def test_masking_a_long_text_is_quick(part: str) -> None:
    text = f"secret: {part * (300_000 // len(part))}"
    assert masked(text)
    assert masked("secret:\n  a:" + " " * 300_000 + "b")


def test_no_hint_holds_another_and_each_form_has_one() -> None:
    """A hint that is missing switches a form off: so it did for most keys."""
    assert not [(one, other) for one in HINTS for other in HINTS if one != other and one in other]
    for text in (*WRITTEN, *KEYS):
        assert any(hint in text.lower() for hint in HINTS), text
    assert HIDDEN in "".join(WRITTEN)
