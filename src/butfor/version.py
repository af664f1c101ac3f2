"""The version of this package."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("butfor")
