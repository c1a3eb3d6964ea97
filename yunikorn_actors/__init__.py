"""The Apache YuniKorn scheduler core as actors."""

__version__ = "0.1.0"
