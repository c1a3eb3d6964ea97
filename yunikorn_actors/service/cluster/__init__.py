"""A scheduler on several machines: the core of each partition is an actor of a Ray cluster.

`split` says which partition an item belongs to. `host` is what runs on the cluster: the core of one
partition. `holdings` are what a resource manager has said and heard of a partition, and so what it
would report if the core began anew. An `envoy` is the portal's side of that conversation, and
`core` the portal itself: to the parts of a service it looks like one core. Only `engine` knows of
Ray.
"""
