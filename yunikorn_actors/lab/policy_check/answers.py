"""Run by another process: print what a policy answers in the first worlds of a seed, as JSON."""

import json
import sys
from importlib import import_module
from operator import attrgetter

from yunikorn_actors.lab.policy_check.check import answers_of


def main(name: str, seed: str) -> None:
    module, _, attribute = name.partition(":")
    policy = attrgetter(attribute)(import_module(module))
    sys.stdout.write(json.dumps(answers_of(policy, int(seed))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
