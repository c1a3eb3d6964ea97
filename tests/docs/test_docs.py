"""The pages tell the truth: what they show runs, what they name exists, what they list is complete.

Each check is a function that returns the faults it finds; for each there is a test that the pages
pass, and one that it would notice.
"""

import argparse
import ast
import contextlib
import inspect
import io
import re
import runpy
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pages import PAGES, REPOSITORY, faulty
from transcripts import save_modules

from benchmarks.cli import main as benchmarks
from yunikorn_actors import Settings, errors
from yunikorn_actors.cli import COMMANDS
from yunikorn_actors.cli import main as yunikorn_actors
from yunikorn_actors.config import properties
from yunikorn_actors.config.node_order import NODE_ORDERS
from yunikorn_actors.lab.tapes import tape
from yunikorn_actors.messages.codec import MESSAGE_TYPES
from yunikorn_actors.planning import apply_fact as follow
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.scenario import step_readers
from yunikorn_actors.scenario.document import parse_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario

README = REPOSITORY / "README.md"
SCENARIO_SEEDS = range(6)


class Block(NamedTuple):
    """A fenced block; `line` is where its text begins."""

    line: int
    info: str
    text: str


NOTHING = Block(0, "", "")


def blocks_of(text: str) -> list[Block]:
    fenced = re.finditer(r"^```(.*)\n((?:(?!^```).*\n)*)^```$", text, re.MULTILINE)
    return [Block(text.count("\n", 0, m.start()) + 2, m[1].strip(), m[2]) for m in fenced]


# -- the pages are found at all


def test_there_are_pages_of_every_kind() -> None:
    expected = {"", "docs", "tutorial", "how-to", "reference", "api", "explanation", "adr"}
    kinds = {page.parent.name if page.parent != REPOSITORY else "" for page in PAGES}
    assert expected == kinds


def test_blocks_are_told_apart() -> None:
    text = "a\n```sh\none\n```\n```python no-run\n\ntwo\n```\n"
    assert [Block(3, "sh", "one\n"), Block(6, "python no-run", "\ntwo\n")] == blocks_of(text)


# -- Python in the pages runs, and prints what stands below it


def python_faults(page: Path, text: str) -> list[str]:
    """Run each block by itself; what a block marked `output` shows must be what it printed.

    One that is marked `more` has the names of the blocks before it.
    """
    faults: list[str] = []
    names: dict[str, Any] = {}
    for block, following in pairwise([*blocks_of(text), NOTHING]):
        if block.info not in {"python", "python more"}:
            continue
        if block.info == "python":
            names = {"__name__": "page"}
        shown = following.text if following.info == "output" else None
        printed = io.StringIO()
        code = "\n" * (block.line - 1) + block.text
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(page), "exec"), names)  # noqa: S102 - our own pages
        except Exception as error:  # noqa: BLE001 - whatever it is, the page is wrong
            faults.append(f"line {block.line}: raised {error!r}")
            continue
        if shown is not None and printed.getvalue() != shown:
            faults.append(f"line {block.line}: printed {printed.getvalue()!r}, shown is {shown!r}")
    return faults


SEARCHING = (
    "docs/explanation/strategies.md",
    "docs/how-to/explore-overnight.md",
    "docs/how-to/hunt-a-race.md",
)
"""Their programs look for races, which takes seconds."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=pytest.mark.slow if name in SEARCHING else ())
        for page in PAGES
        if "```python" in page.read_text("utf-8")
        for name in [page.relative_to(REPOSITORY).as_posix()]
    ],
)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [] == python_faults(page, page.read_text("utf-8"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("```python\nprint(1)\n```\n\n```output\n1\n```\n", 0),
        ("```python\nprint(1)\n```\n\n```output\n2\n```\n", 1),
        ("```python\nimport nothing_of_this_name\n```\n", 1),
        ("```python\na = 1\n```\n\n```python more\nprint(a)\n```\n\n```output\n1\n```\n", 0),
        ("```python\na = 1\n```\n\n```python\nprint(a)\n```\n", 1),
        ("```python no-run\nimport nothing_of_this_name\n```\n", 0),
    ],
)
def test_python_that_does_not_run_is_noticed(text: str, number: int) -> None:
    assert number == len(python_faults(Path("page.md"), text))


# -- scenarios in the pages hold


def scenario_faults(page: Path, text: str) -> list[str]:
    faults: list[str] = []
    for block in blocks_of(text):
        if block.info == "yaml" and re.search(r"^steps:", block.text, re.MULTILINE):
            scenario = parse_scenario(block.text, f"{page}:{block.line}")
            outcome = run_scenario(scenario, RunOptions(seeds=SCENARIO_SEEDS))
            faults.extend(str(failure) for failure in outcome.failures)
    return faults


@pytest.mark.parametrize(
    "page", [it for it in PAGES if "\nsteps:" in it.read_text("utf-8")], ids=lambda it: it.stem
)
def test_scenarios_hold(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A scenario may name policies that stand on its page.
    save_modules(page.read_text("utf-8"))
    assert [] == scenario_faults(page, page.read_text("utf-8"))


def test_a_scenario_that_does_not_hold_is_noticed() -> None:
    steps = "steps:\n- create_node: {id: n}\n- expect: {nodes: {n: null}}\n"
    assert 1 == len(scenario_faults(Path("page.md"), f"```yaml\nname: x\n{steps}```\n"))


# -- links resolve


def anchors_of(text: str) -> list[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings]


def link_faults(page: Path, text: str) -> list[str]:
    faults: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.is_relative_to(REPOSITORY) or not target.exists():
            faults.append(f"{link}: is not there")
        elif anchor and anchor not in anchors_of(target.read_text("utf-8")):
            faults.append(f"{link}: has no such heading")
    return faults


def test_links_resolve() -> None:
    assert {} == faulty(lambda page: link_faults(page, page.read_text("utf-8")))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("[a](CHANGELOG.md) [b](docs/reference/facts.md#refusals) [c](https://example.org/x)", 0),
        ("[a](docs/nothing.md)", 1),
        ("[a](../outside.md)", 1),
        ("[a](docs/reference/facts.md#nothing)", 1),
    ],
)
def test_a_broken_link_is_noticed(text: str, number: int) -> None:
    assert number == len(link_faults(README, text))


# -- the README begins with the two commands


def setup_faults(text: str) -> list[str]:
    """Each must do everything by itself, on a machine with nothing but Python."""
    commands = [block.text.strip() for block in blocks_of(text) if block.info == "sh"][:2]
    make = "python3 -m venv .venv && "
    tests = ".venv/bin/python -m pytest -n auto --dist worksteal"
    expected = [
        f"{make}. .venv/bin/activate && pip install -q -e . && yunikorn-actors demo",
        f"{make}.venv/bin/pip install -q -e '.[dev]' && {tests}",
    ]
    return [f"{command!r}" for command in commands if command not in expected] + [
        f"{command!r} is missing" for command in expected if command not in commands
    ]


def test_the_readme_begins_with_the_two_commands() -> None:
    assert [] == setup_faults(README.read_text("utf-8"))


def test_other_commands_are_noticed() -> None:
    text = README.read_text("utf-8")
    assert setup_faults(text.replace("-m pytest", "-m pytest --slow"))
    assert setup_faults(text.replace("```sh\n", "```sh\n$ ", 1))
    assert setup_faults(text.replace("```sh\n", "```console\n", 1))


# -- the package's page has no links that lead to files of the repository


def described() -> str:
    text: str = runpy.run_path(str(REPOSITORY / "setup.py"))["long_description"]()
    return text


def test_the_long_description_is_the_readme_without_relative_links() -> None:
    links = r"\]\(([^)]+)\)"
    readme, text = README.read_text("utf-8"), described()
    absolute = [link for link in re.findall(links, readme) if link.startswith("https://")]
    assert absolute
    assert absolute == re.findall(links, text)
    assert re.sub(r"\[|\]\([^)]*\)", "", readme) == re.sub(r"\[|\]\([^)]*\)", "", text)


# -- commands that are shown exist


def console_faults(text: str) -> list[str]:
    faults: list[str] = []
    for block in blocks_of(text):
        kind = block.info.partition(" ")[0]
        if kind in {"console", "sh"}:
            # Of what is not run here the commands of ours exist at least.
            any_ = r"(.*)" if block.info == "console" else r"(yunikorn-actors .*)"
            prompt = r"\$ " if kind == "console" else ""
            commands = re.findall(rf"^{prompt}{any_}$", block.text, re.MULTILINE)
            faults.extend(fault for command in commands for fault in command_faults(command))
    return faults


def command_faults(command: str) -> list[str]:
    """Ask the command for its help, and look there for the options that are shown."""
    for name, main in _PROGRAMS.items():
        if command.startswith(f"{name} "):
            words = shlex.split(command.removeprefix(name))
            names = [word for word in words if re.fullmatch("[a-z]+(?:-[a-z]+)*", word)]
            help_ = _help_of(main, names)
            options = [word.partition("=")[0] for word in words if word.startswith("--")]
            return [f"{command}: no {option}" for option in options if option not in help_] + (
                [] if help_ else [f"{command}: is no command"]
            )
    return [f"{command}: is no program of ours"]


def _help_of(main: Callable[[list[str]], int], names: list[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            main([*names, "--help"])
        except SystemExit as end:
            return "" if end.code else printed.getvalue()
    return ""


_PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "yunikorn-actors": yunikorn_actors,
    "python -m benchmarks": benchmarks,
}


def test_commands_exist() -> None:
    assert {} == faulty(lambda page: console_faults(page.read_text("utf-8")))


@pytest.mark.parametrize(
    "command",
    [
        "yunikorn-actors fly",
        "yunikorn-actors trace show x.trace --fly",
        "other x",
        "yunikorn-actors trace fly",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(command: str) -> None:
    assert 1 == len(console_faults(f"```console\n$ {command}\n```\n"))


# -- files that a page names exist


def lost_files(text: str) -> list[str]:
    folders = "yunikorn_actors|tests|docs|examples|benchmarks"
    pattern = rf"(?<![\w/])(?:{folders})/[\w./-]*(?:\.\w+|\w(?=`))"
    named = re.findall(pattern, text)
    return [name for name in named if not (REPOSITORY / name).exists()]


def test_files_that_are_named_exist() -> None:
    assert {} == faulty(lambda page: lost_files(page.read_text("utf-8")))


def test_a_file_that_does_not_exist_is_noticed() -> None:
    assert ["tests/no.py"] == lost_files("`tests/no.py`, tests/docs/test_docs.py and `no.py`")
    assert ["tests/gone.py"] == lost_files("python -m pytest tests/gone.py")


EXTENSION_PAGES = ("add-a-node-order", "add-an-ask-or-application-order", "add-a-refusal")


@pytest.mark.parametrize("name", EXTENSION_PAGES)
def test_an_extension_touches_four_files_at_most(name: str) -> None:
    """Each part of a page is a numbered list, and each step of it is one file."""
    text = (REPOSITORY / f"docs/how-to/{name}.md").read_text("utf-8")
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert numbers
    assert max(numbers) <= (5 if name == "add-a-refusal" else 4), "the fifth generates pages"


# -- pages that follow from the code are fresh


@cache
def rendered() -> dict[Path, str]:
    pages: dict[Path, str] = runpy.run_path(str(REPOSITORY / "docs/generate.py"))["rendered"]()
    return pages


def stale(expected: dict[Path, str]) -> list[Path]:
    return [path for path, text in expected.items() if path.read_text("utf-8") != text]


def test_generated_pages_are_fresh() -> None:
    assert [] == stale(rendered()), "run python docs/generate.py"


def test_every_message_is_on_its_page() -> None:
    text = (REPOSITORY / "docs/reference/messages.md").read_text("utf-8")
    assert [] == [name for name in MESSAGE_TYPES if f"### {name}\n" not in text]


def test_a_stale_page_is_noticed() -> None:
    fresh = {page: page.read_text("utf-8") for page in PAGES}
    page = next(iter(fresh))
    assert [page] == stale({**fresh, page: fresh[page] + "one more line\n"})


# -- lists are complete


def missing(names: Iterable[str], page: str) -> list[str]:
    text = (REPOSITORY / "docs/reference" / page).read_text("utf-8")
    return [name for name in names if not re.search(rf"`{re.escape(name)}(?![\w-])", text)]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("settings.md", Settings.__struct_fields__),
        ("settings.md", properties.READERS),
        ("settings.md", NODE_ORDERS),
        ("errors.md", [name for name in errors.__all__ if name != "CoreError"]),
        ("scenario-format.md", step_readers._STEPS),
        ("tape-format.md", tape._FORMS),
    ],
    ids=["settings", "properties", "node orders", "errors", "steps", "verbs"],
)
def test_a_list_is_complete(page: str, names: Iterable[str]) -> None:
    assert [] == missing(names, page)


def actions_of(command: str) -> list[str]:
    """Return the actions of a command, such as `show` of `trace`; none if it has no such words."""
    parser = argparse.ArgumentParser()
    import_module(f"yunikorn_actors.cli.{command}").add_arguments(parser)
    return [name for it in parser._actions if isinstance(it.choices, dict) for name in it.choices]


def test_every_command_has_its_place() -> None:
    headings = anchors_of((REPOSITORY / "docs/reference/cli.md").read_text("utf-8"))
    of_actions = [f"{name}-{action}" for name in COMMANDS for action in actions_of(name)]
    assert {"trace-refusals", "lab-run", "config-diff"} <= {*of_actions}
    assert [] == [
        name
        for name in (*COMMANDS, *of_actions)
        if not any(h == name or h.startswith(f"{name}-") for h in headings)
    ]


def test_a_name_that_is_left_out_is_noticed() -> None:
    assert ["fly"] == missing(["fly", "advance"], "scenario-format.md")


# -- the table of what a fact wakes


def facts_in_first_column(text: str) -> list[str]:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"\w+", row)]


def test_the_table_of_what_a_fact_wakes_names_each_fact_once() -> None:
    """The page says that a fact without a row wakes nothing, so no row may be missing."""
    page = REPOSITORY / "docs/explanation/planning.md"
    observed = sorted(fact.__name__ for fact in {*follow.CHANGES, *follow.RESOLVING})
    assert observed == sorted(facts_in_first_column(page.read_text("utf-8")))


def test_facts_are_found_in_the_first_column_alone() -> None:
    text = "| fact | wakes |\n| --- | --- |\n| `One`, `Two` | `Three` |\n| plain | x |\n"
    assert ["One", "Two"] == facts_in_first_column(text)


# -- the table of the stages of a plan


STAGE_OF_STEP = {
    "denials.plan": "time", "backoff.plan": "time", "measurer.plan": "measure",
    "placer.place_first": "lost targets", "placer.place_reserved": "reserved",
    "swapper.plan": "swaps", "admitter.plan": "turns", "gatekeeper.plan": "turns",
    "placer.plan": "place", "backoff.end_passes": "preempt", "preemptor.plan": "preempt",
    "backoff.begin_rests": "back-off", "reserver.plan": "reserve", "explainer.plan": "explain",
}  # fmt: skip
"""What the planner calls, and the stage of the page that it belongs to."""


def steps_of(*parts: Callable[..., object]) -> list[str]:
    """Name what these methods yield, in the order of their lines."""
    texts = [textwrap.dedent(inspect.getsource(part)) for part in parts]
    yields = [
        [it for it in ast.walk(ast.parse(text)) if isinstance(it, ast.Yield)] for text in texts
    ]
    in_order = [it for part in yields for it in sorted(part, key=lambda it: it.lineno)]
    return [ast.unparse(it.value).removeprefix("self.") for it in in_order if it.value is not None]


def stages_in_order(text: str) -> list[tuple[int, str]]:
    return [(int(n), name) for n, name in re.findall(r"^\| (\d+)\. ([^|]+) \|", text, re.MULTILINE)]


def test_the_page_on_planning_has_the_stages_in_the_order_of_the_planner() -> None:
    page = REPOSITORY / "docs/explanation/planning.md"
    steps = steps_of(Planner._first, Planner._next, Planner._last)
    stages = dict.fromkeys(STAGE_OF_STEP[step] for step in steps)
    assert list(enumerate(stages, 1)) == stages_in_order(page.read_text("utf-8"))


def test_steps_are_found_in_the_order_of_their_lines() -> None:
    class Parts:
        def one(self) -> Iterator[object]:
            if self:
                yield self.one
            yield self.other

        def other(self) -> Iterator[object]:
            yield self.one

    assert ["one", "other", "one"] == steps_of(Parts.one, Parts.other)


def test_stages_are_found_by_their_number() -> None:
    text = "| stage | what |\n| --- | --- |\n| 1. one more | x |\n| none | 2. y |\n"
    assert [(1, "one more")] == stages_in_order(text)


# -- the pages name nothing that their reader does not have


def strangers(text: str) -> list[str]:
    """Find absolute paths, and pages that nobody can open."""
    named = re.findall(r"(?<![\w/(:.-])([\w./-]*\w\.md)\b", text)
    known = [str(page.relative_to(REPOSITORY)) for page in PAGES]
    lost = [name for name in named if not any(path.endswith(name.lstrip("./")) for path in known)]
    paths = re.findall(r"(?<![\w.`/:<-])/(?:home|root|work|tmp|usr|opt)\b\S*", text)
    return [*lost, *paths]


def test_pages_name_what_their_reader_has() -> None:
    assert {} == faulty(lambda page: strangers(page.read_text("utf-8")))


@pytest.mark.parametrize("text", [f"see {Path('/', 'home', 'me')}", "as plan.md says"])
def test_what_a_reader_does_not_have_is_noticed(text: str) -> None:
    assert 1 == len(strangers(text))


# -- the index lists every page


def unlisted(index: str) -> list[str]:
    """Find pages that neither the index lists nor a list that it names; the site would lose them."""
    docs = REPOSITORY / "docs"
    listed = set(re.findall(r"\]\(([\w./-]+\.md)\)", index))
    for name in [name for name in listed if name.endswith("README.md")]:
        text = (docs / name).read_text("utf-8")
        listed |= {
            f"{name.removesuffix('README.md')}{it}"
            for it in re.findall(r"\]\(([\w.-]+\.md)\)", text)
        }
    pages = [page.relative_to(docs).as_posix() for page in PAGES if page.is_relative_to(docs)]
    return [page for page in pages if page not in {*listed, "index.md"}]


def test_the_index_lists_every_page() -> None:
    assert [] == unlisted((REPOSITORY / "docs/index.md").read_text("utf-8"))


def test_a_page_that_is_not_listed_is_noticed() -> None:
    text = (REPOSITORY / "docs/index.md").read_text("utf-8")
    assert ["reference/cli.md"] == unlisted(text.replace("(reference/cli.md)", "(x.md)"))
