"""What fair order goes by is what an application has allocated, plus what is in flight."""

from support import APP, Lab


def _config(vcore: int) -> str:
    leaf = (
        "{name: default, properties: {application.sort.policy: fair}, "
        f"resources: {{max: {{vcore: {vcore}m}}}}}}"
    )
    root = f"{{name: root, submitacl: '*', queues: [{leaf}]}}"
    return f"partitions: [{{name: default, queues: [{root}]}}]"


def _counted(amount: dict[str, int]) -> dict[str, int]:
    return {kind: quantity for kind, quantity in amount.items() if quantity}


def _used(lab: Lab) -> list[tuple[dict[str, int], dict[str, int]]]:
    return [
        (_counted(view.used), _counted(view.app.allocated))
        for view in lab.planner.model.apps.values()
    ]


def test_a_reload_keeps_what_is_in_flight() -> None:
    """What is in flight at that moment stays counted: a commit adds nothing later."""
    for seed in range(1, 100):
        lab = Lab(seed=seed, config=_config(10))
        lab.submit(APP)
        lab.nodes(n1=100)
        lab.settle()
        lab.ask("k1", vcore=5)
        lab.ask("k2", vcore=50)
        lab.configure(_config(20))
        lab.settle()
        for used, allocated in _used(lab):
            assert used == allocated, f"seed {seed}"
