"""What is seen of worlds of the baseline while nothing is spoilt: played once in each process."""

from functools import cache

from yunikorn_actors.lab.baseline import seen_in

seen_unspoilt = cache(seen_in)
