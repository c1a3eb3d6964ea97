"""`python -m yunikorn_actors.service.rest`: the process of the read side."""

import sys
from importlib import import_module

from yunikorn_actors.values.garbage import kept_for_good

if __name__ == "__main__":
    with kept_for_good():
        child = import_module("yunikorn_actors.service.rest.child")
    child.main(*sys.argv[1:])
