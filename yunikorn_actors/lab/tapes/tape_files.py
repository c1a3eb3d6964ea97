"""Tapes as text that is given, as files, and as folders of files."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from yunikorn_actors.config.fault import why_unreadable
from yunikorn_actors.lab.case import DIGITS, PACKAGE, Case, read_case
from yunikorn_actors.lab.tapes.tape import TAPE_BYTES_MAX, Tape, TapeError, parse_tape
from yunikorn_actors.scenario.document import ScenarioError

SUFFIX = ".tape"


def keep(folder: Path, tape: Tape, why: str = "") -> Path:
    """Write a tape into a folder, under a name that says what is on it; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(tape.line().encode()).hexdigest()[:DIGITS]
    path = folder / f"{digest}{SUFFIX}"
    remarks = (f"# {line}" for line in why.splitlines())
    path.write_text("\n".join((*remarks, str(tape), "")), "utf-8")
    return path


def kept(name: str) -> Iterator[str]:
    """Yield the tapes that are meant: each a text or a file."""
    if _is_text(name) or not Path(name).is_dir():
        yield name
        return
    files = sorted(Path(name).rglob(f"*{SUFFIX}"))
    if not files:
        raise TapeError(f"{name}: no *{SUFFIX} in it: name a folder of tapes")
    yield from map(str, files)


def source_of(name: str) -> str:
    """Return where a tape is from, as messages name it."""
    return "tape" if _is_text(name) else name


def read_tape(name: str) -> Tape:
    return parse_tape(_text_of(name), source_of(name))


def _text_of(name: str) -> str:
    if _is_text(name):
        return name
    try:
        with Path(name).open("rb") as file:
            return file.read(TAPE_BYTES_MAX + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TapeError(f"{name}: {why_unreadable(error)}") from None


def _is_text(name: str) -> bool:
    return name.startswith("tape ")


def case_of(tape: Tape, source: str, elsewhere: Path | None) -> Case:
    """Find the scenario where the tape says, else beside the tape, else in this package."""
    named = elsewhere or Path(tape.scenario)
    places = (named, Path(source).parent / named, PACKAGE / named)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ScenarioError(
            f"{source}: there is no {named}, neither here nor beside the tape: say where it is now "
            "with --scenario FILE"
        )
    return read_case(found, tape.topology)


def keep_case(folder: Path, case: Case, tape: Tape, why: str = "") -> tuple[Path, Path]:
    """Write a scenario with its tape beside it; return both files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.digest}.yaml"
    path.write_text(case.text, "utf-8")
    return path, keep(folder, replace(tape, scenario=path.name), why)
