"""A small case, and a defect that only some of its orders show."""

from pathlib import Path

import pytest

from yunikorn_actors.machines.context import commit

SMALL = """\
name: a node leaves while work comes
steps:
  - create_node: {ids: [n1, n2], capacity: {vcore: 4000}}
  - add_app: {id: app-1, queue: root.default}
  - ask: {app: app-1, key: k, resource: {vcore: 1000}}
  - remove_node: n1
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the case into the current folder; return the name of its file."""
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return "small.yaml"


@pytest.fixture
def nodes_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a defect: proposals are committed on nodes that have left (R-061, H-11)."""
    monkeypatch.setattr(commit, "check_node", lambda *_: None)
