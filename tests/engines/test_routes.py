"""Schemathesis asks every route for what its description says, and for what it does not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("schemathesis")
from served import P, live, serving

pytestmark = [pytest.mark.engines, pytest.mark.timeout(500)]
DESCRIPTION = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
THERE = {
    "partition": "default",
    "queue": "root.prod",
    "application": "app-gang",
    "node": "n1",
    "user": "ann",
    "group": "ops",
    "manager": "rm-1",
    "key": "need-0",
}
"""Names that the service has."""
ENDLESS = "events/stream|x/overview|x/manager"
"""Streams, and what removes all that the other routes are asked for."""


def test_no_route_answers_otherwise_than_it_is_described(tmp_path: Path) -> None:
    description = json.loads(DESCRIPTION.read_text())
    for path in description["paths"].values():
        for operation in path.values():
            for parameter in operation["parameters"]:
                if parameter["name"] in THERE:
                    parameter["example"] = THERE[parameter["name"]]
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(description))
    with serving() as served:
        live(served)
        command = [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis as s; s()"),
            *("run", str(file), "--url", f"http://{served.part.address}"),
            *("--phases", "examples,coverage,fuzzing", "--exclude-path-regex", ENDLESS),
            *("--max-examples", "8", "--generation-deterministic", "--no-color"),
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert 0 == done.returncode, done.stdout
        # All of it was reached, and the service goes on.
        assert served.get(f"{P}/application/app-gang")
