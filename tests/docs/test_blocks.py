"""Every block of code in the pages is run by a test, or says why not.

A block says by its first line what it is: ```` ```python ````, ```` ```sh no-run REASON ````. Each
kind that claims to be runnable has a test that runs it, which is named here; a kind that is new has
none, and fails.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, REPOSITORY, faulty

from yunikorn_actors.config import parse_config

PROSE = {"text", "output", "{eval-rst}", "mermaid", "protobuf"}
"""Nothing of them is run: they are drawings, what is printed, directives of the site, copies."""
RUN = {
    "python": "tests/docs/test_docs.py",
    "python more": "tests/docs/test_docs.py",
    "python served": "tests/service/test_pages.py",
    "python after": "tests/docs/test_transcripts.py",
    "console": "tests/docs/test_transcripts.py",
}
"""Kinds that are run on every page that has them."""
RUN_ON: dict[str, dict[str, str]] = {
    "sh": {
        # The first two blocks, and no more than those.
        "README.md": "tests/engines/test_installed.py and .ci/run",
        "docs/how-to/change-these-pages.md": "tests/engines/test_site.py",
        "docs/how-to/protect-a-service.md": "tests/service/test_protecting_page.py",
        "docs/how-to/write-a-client.md": "tests/engines/test_clients.py",
    },
    "js": {"docs/how-to/write-a-client.md": "tests/engines/test_clients.py"},
    "console served": {"docs/how-to/operate-a-service.md": "tests/service/test_operating_page.py"},
    "python shown": {"docs/how-to/protect-a-service.md": "tests/service/test_protecting_page.py"},
    "python pytest": {
        "docs/how-to/hunt-a-race.md": "tests/lab/test_users_code.py",
        "docs/how-to/use-it-in-pytest.md": "tests/docs/test_blocks.py",
    },
}
"""Kinds that are run on these pages, and by what."""
_BLOCK = re.compile(r"^(`{3,})(\S.*)\n((?:(?!^\1).*\n)*)^\1$", re.MULTILINE)
_SAVED = re.compile(r"`[\w.-]+\.yaml`[^`\n]*:$")


def unrun(name: str, text: str) -> list[str]:
    """Name the blocks of a page that nothing runs, with the line where each begins."""
    faults = []
    for found in _BLOCK.finditer(text):
        line, info, code = text.count("\n", 0, found.start()) + 1, found[2].strip(), found[3]
        kind, _, rest = info.partition(" ")
        if rest == "no-run" or rest.startswith("no-run "):
            if len(rest.split()) < 3:
                faults.append(f"line {line}: `{info}` gives no reason")
        elif kind == "yaml":
            if fault := yaml_fault(text[: found.start()].rstrip(), code):
                faults.append(f"line {line}: {fault}")
        elif kind not in PROSE and info not in RUN and name not in RUN_ON.get(info, {}):
            faults.append(f"line {line}: nothing runs `{info}` of this page")
    return faults


def yaml_fault(before: str, code: str) -> str:
    """A scenario is played, a file is saved for a transcript, and a configuration is read here."""
    if re.search(r"^steps:", code, re.MULTILINE) or _SAVED.search(before):
        return ""
    if not code.startswith("partitions:"):
        return "it is no scenario, no file that is saved, and no configuration"
    try:
        parse_config(code)
    except ValueError as error:
        return str(error)
    return ""


def shown(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def test_every_block_is_run_or_says_why_not() -> None:
    assert {} == faulty(lambda page: unrun(shown(page), page.read_text("utf-8")))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("```sh\nls\n```\n", "nothing runs `sh`"),
        ("```go\nx\n```\n", "nothing runs `go`"),
        ("```python no-run\nx\n```\n", "gives no reason"),
        ("```sh no-run because\nls\n```\n", "gives no reason"),
        ("```yaml\na: 1\n```\n", "it is no scenario"),
        ("```yaml\npartitions: 7\n```\n", "partitions"),
        ("```python servd\nx\n```\n", "nothing runs `python servd`"),
    ],
)
def test_a_block_that_nothing_runs_is_noticed(text: str, says: str) -> None:
    (fault,) = unrun("docs/page.md", text)
    assert fault.startswith("line 1: ")
    assert says in fault
    assert [] == unrun("docs/page.md", "```sh no-run it takes a day\nls\n```\n")


def test_what_runs_them_is_there_and_no_page_is_listed_in_vain() -> None:
    files = [*RUN.values(), *(it for pages_ in RUN_ON.values() for it in pages_.values())]
    assert all((REPOSITORY / name).exists() for it in files for name in it.split(" and "))
    having = {
        (found[2].strip(), shown(page))
        for page in PAGES
        for found in _BLOCK.finditer(page.read_text("utf-8"))
    }
    assert {(info, name) for info, names in RUN_ON.items() for name in names} <= having


def test_the_readme_has_no_shell_commands_but_the_two() -> None:
    assert 2 == (REPOSITORY / "README.md").read_text("utf-8").count("```sh\n")


# -- a file of tests


@pytest.mark.slow
def test_the_fixture_of_the_page_works_in_pytest(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs/how-to/use-it-in-pytest.md").read_text("utf-8")
    for number, block in enumerate(
        re.findall(r"^```python pytest\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ):
        (tmp_path / f"test_page_{number}.py").write_text(block)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*command, tmp_path],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "1 passed" in done.stdout


# -- what is installed


def pip_faults(text: str) -> list[str]:
    """Name what asks an index for the package, which is on none, and extras that there are not."""
    extras = set(re.findall(r"^(\w+) =$", _extras(), re.MULTILINE))
    faults = []
    for command in re.findall(r"pip install[^\n`&]*", text):
        if "yunikorn-actors" in command or "yunikorn_actors" in command:
            faults.append(f"{command}: the package is on no index")
        wanted = {it for group in re.findall(r"\.\[([\w,]+)\]", command) for it in group.split(",")}
        faults += [f"{command}: no extra is called {it}" for it in sorted(wanted - extras)]
    return faults


def _extras() -> str:
    config = (REPOSITORY / "setup.cfg").read_text("utf-8")
    return config.partition("[options.extras_require]\n")[2].partition("\n[")[0]


def test_pages_install_what_works_from_a_clone() -> None:
    assert {} == faulty(lambda page: pip_faults(page.read_text("utf-8")))


def test_messages_install_what_works_from_a_clone() -> None:
    modules = (REPOSITORY / "yunikorn_actors").rglob("*.py")
    # An installed package may name itself: pip finds it beside itself, and asks no index for it.
    sources = [it for it in modules if it.name != "version.py"]
    sources += (REPOSITORY / "deploy").iterdir()
    assert [] == [
        f"{path.name}: {it}" for path in sources for it in pip_faults(path.read_text("utf-8"))
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("pip install -e '.[grpc,service]'", 0),
        ("pip install -q -e '.[dev]' && x", 0),
        ("pip install 'yunikorn-actors[grpc]'", 1),
        ("`pip install yunikorn-actors`", 1),
        ("pip install -e '.[grcp]'", 1),
    ],
)
def test_a_command_that_installs_nothing_is_noticed(text: str, number: int) -> None:
    assert number == len(pip_faults(text))
