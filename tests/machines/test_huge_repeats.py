"""An ask may repeat as often as an int32 can say: checkers and health multiply, they do not loop."""

import pytest
from support import APP, Lab


@pytest.mark.timeout(20)
def test_two_thousand_million_repeats() -> None:
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n1=1)
    lab.ask("k", max_allocations=2**31 - 1)
    lab.settle()
    assert lab.running() == ["k"]
