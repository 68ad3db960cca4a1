"""The async public names."""

from holdfast.connect import connect_async as connect

__all__ = ["connect"]
