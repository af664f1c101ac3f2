"""Packages that only parts of butfor need: where one is missing, the error has the line that installs it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXTRAS", "optional_imports"]

# The extra that installs each optional package, by the name under which it is imported.
EXTRAS = {
    **dict.fromkeys(["cyclopts", "docstring_parser", "rich"], "cli"),
    "matplotlib": "plot",
    "rdkit": "molecules",
    "networkx": "networkx",
    "polars": "tables",
    "ray": "ray",
    "anywidget": "notebook",
    **dict.fromkeys(["captum", "jinja2", "optuna"], "reproduce"),
}
# No extra has these: PyG imports pandas wherever it is installed.
OTHERS = ("pandas",)


@contextmanager
def optional_imports(extra: str | None = None) -> Iterator[None]:
    """Around imports of optional packages: if one is not installed, say how to install it.

    Args:
        extra: what to install, where that is more than the package's own extra.

    Raises:
        InputError: an optional package is not installed.
    """
    try:
        yield
    except ImportError as problem:
        package = _missing(problem)
        if package is None:
            raise
        wanted = package if package in OTHERS else f"'butfor[{extra or EXTRAS[package]}]'"
        raise InputError(f"{package} is not installed; run: pip install {wanted}") from problem


def _missing(problem: BaseException | None) -> str | None:
    """The optional package whose absence caused an import error, perhaps through other errors that wrap it."""
    while problem is not None:
        name = (getattr(problem, "name", None) or "").partition(".")[0]
        if isinstance(problem, ModuleNotFoundError) and (name in EXTRAS or name in OTHERS):
            return name
        problem = problem.__cause__
    return None
