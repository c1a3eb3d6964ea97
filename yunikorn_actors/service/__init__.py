"""The scheduler as a service: what others reach over the network stands here, above the core.

`serving` puts a core and its parts together; each part is one thing that listens (`part`). Nothing
below this package knows of it.
"""
