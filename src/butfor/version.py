"""The version of this package."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("butfor")
"""The version of this package, which every result carries.

Examples:
    >>> import butfor
    >>> model, data = butfor.example()
    >>> butfor.explain(model, data, 597).versions["butfor"] == butfor.__version__
    True
"""
