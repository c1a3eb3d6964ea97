"""Edits that a program makes of functions of the core: each is a mistake that somebody could make."""

import ast
from itertools import islice

import pytest

from yunikorn_actors.lab.mutants.edits import Edit, Purity, count_of, drawn_edits, version
from yunikorn_actors.lab.mutants.mutant import code_of, function_of, source_of
from yunikorn_actors.lab.schedules.random_draw import Draw

EACH = 330


@pytest.fixture(scope="module")
def purity() -> Purity:
    """It reads all of the core."""
    return Purity()


def versions(body: str) -> list[str]:
    """Return what becomes of a body of one line."""
    text = f"def edited(self, a, b):\n    {body}"
    trees = [version(text, number) for number in range(count_of(text))]
    return [ast.unparse(it).partition("\n    ")[2] for it in trees]


@pytest.mark.parametrize(
    ("body", "others"),
    [
        ("return a < b", ["return a <= b"]),
        ("return a is b", ["return a is not b"]),
        ("return a and b", ["return b", "return a"]),
        ("return not a", ["return a"]),
        ("return a - b", ["return a + b", "return a"]),
        ("return self.one(a, b)", ["return self.one(b, a)"]),
        ("return max(a, b)", ["return max(b, a)", "return min(a, b)", "return a"]),
        ("return sorted(a)", ["return list(a)"]),
        ("return a[:b]", ["return a"]),
        ("return self.one, self.two", ["return (self.two, self.two)", "return (self.one, self.one)"]),
        ("return 3", ["return 4"]),
        ("return True", ["return False"]),
        ("self.one = a", ["self.one = self.one"]),
        ("self.one[a] = b", ["self.one[a] = self.one[a]"]),
        ("self.one += a", ["self.one += 0"]),
        ("del self.one[a]", ["pass"]),
        ("self.note(a)", ["pass"]),
        ("self.one.pop(a, None)", ["if a not in self.one:", "self.one.pop(None, a)"]),
        ("self.one.clear()", ["if not self.one:"]),
        ("raise ValueError(a < b)", []),
        ("assert a < b", []),
    ],
)  # fmt: skip
def test_each_edit_is_a_small_one(body: str, others: list[str]) -> None:
    found = [it.partition("\n")[0] for it in versions(body)]
    assert others == found


def test_conditions_are_left_out_and_loops_end_early() -> None:
    text = (
        "def edited(a):\n    for it in a:\n        if it:\n            continue\n        a.add(it)"
    )
    found = {ast.unparse(version(text, number)) for number in range(count_of(text))}
    assert len(found) == count_of(text)
    for part in ("if True:", "if False:", "break", "if it in a:\n            a.add(it)", "pass"):
        assert any(part in it for it in found)


def test_edits_of_the_core_can_be_put_in_force() -> None:
    rooms = set()
    for edit in islice(drawn_edits(Draw(1)), 0, None, EACH):
        function, tree = function_of(edit.where), edit.tree()
        assert ast.dump(tree) != ast.dump(ast.parse(source_of(function)))
        assert code_of(function, tree).co_name == function.__name__
        rooms.add(edit.where.partition(".")[0])
    assert {"state", "planning", "machines", "policies", "config"} < rooms


def test_the_same_edits_are_drawn_each_time() -> None:
    first, again, others = ([*islice(drawn_edits(Draw(seed)), 50)] for seed in (1, 1, 2))
    assert first == again
    assert first != others
    assert first[0].id == f"{first[0].where} {first[0].number}"
    assert isinstance(first[0], Edit)


@pytest.mark.parametrize(
    ("value", "is_pure"),
    [
        ("a + b", True),
        ("len(a.items())", True),
        ("resource_of(a)", False),
        ("a.pop(b)", False),
        ("[it for it in a if it.name.startswith('b')]", True),
        ("(a := b)", False),
    ],
)
def test_what_changes_something_is_not_worked_out_twice(
    value: str, purity: Purity, *, is_pure: bool
) -> None:
    (statement,) = ast.parse(value).body
    assert isinstance(statement, ast.Expr)
    assert is_pure == purity.of(statement.value)
