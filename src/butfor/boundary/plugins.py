"""Code from other packages, found by the entry points that they declare."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, NamedTuple

from butfor.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Plugins", "load_plugins"]


class Plugins(NamedTuple):
    """What the entry points of one group gave.

    Attributes:
        loaded: the imported objects by the names of their entry points.
        failures: a sentence for each entry point that could not be imported, with the name of its package.
    """

    loaded: Mapping[str, object]
    failures: Sequence[str]


def load_plugins(group: str) -> Plugins:
    """Import everything that installed packages declare in this group of entry points.

    A package that is broken must not take down everything else, so its error is returned and not raised.
    """
    loaded: dict[str, object] = {}
    failures: list[str] = []
    for entry in entry_points(group=group):
        try:
            loaded[entry.name] = entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # whatever the package does when it is imported
            package = entry.value if entry.dist is None else entry.dist.name
            failures.append(f"cannot load {entry.value} of the package {package} ({group}): {one_line(problem)}")
    return Plugins(loaded, failures)
