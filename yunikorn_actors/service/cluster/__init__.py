"""A scheduler on several machines: the core of each partition is an actor of a Ray cluster.

`split` says which partition an item belongs to. `partition_host` is what runs on the cluster: the
core of one partition. `recovery_report` keeps what a resource manager and a partition have
exchanged, and so what it would report if the core began anew. A `manager_channel` is the portal's
side of that conversation, and `portal` the portal itself: to the parts of a service it looks like
one core. Only `engine` knows of Ray.
"""
