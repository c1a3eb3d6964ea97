"""A cluster of one computer, for a service that has no other: its settings of Ray."""

from typing import Final

LOCAL: Final = "local"
"""Given instead of an address: the cluster of this computer alone."""
ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
"""It tells nobody that it is there, and listens on this computer alone; read when Ray is imported.

The second is Ray's switch for clusters of several computers where it does not support them.
"""
