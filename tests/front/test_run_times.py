"""A run time that is none is refused where it is given."""

import pytest

from yunikorn_actors import InvalidRequest, Scheduler

TAG = "yunikorn-actors/runtime"


@pytest.mark.parametrize("text", ["soon", "-5", "nan", "inf", "1e300", "9e9999", "1e10"])
def test_in_a_tag(text: str) -> None:
    with Scheduler() as s:
        s.add_node("n1", vcore=1)
        app = s.application("a", user="ann")
        with pytest.raises(InvalidRequest, match=f"ask: tags: {TAG}: must be seconds"):
            app.ask("k", vcore=1, tags={TAG: text})
        with pytest.raises(InvalidRequest, match=f"application: tags: {TAG}: must be seconds"):
            s.application("b", user="ann", tags={TAG: text})
        assert "n1" == app.ask("k", vcore=1, tags={TAG: "2.5"}).result(10).node_id


@pytest.mark.parametrize("runtime", [-1, float("nan"), float("inf"), 1e300, True, "60"])
def test_as_an_argument(runtime: object) -> None:
    with Scheduler() as s:
        app = s.application("a", user="ann")
        with pytest.raises(InvalidRequest, match="ask: runtime: must be seconds"):
            app.ask("k", vcore=1, runtime=runtime)  # type: ignore[arg-type] # that is the mistake
