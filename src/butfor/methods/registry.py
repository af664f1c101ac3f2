"""Methods by name: ours, and those that other packages bring."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import cast

from butfor.boundary.plugins import load_plugins
from butfor.methods.base import Method

__all__ = ["MethodRegistry"]

GROUP = "butfor.methods"


class MethodRegistry(Mapping[str, type[Method]]):
    """The methods of butfor, then those of plug-ins: packages that declare an entry point for a class of theirs.

        [project.entry-points."butfor.methods"]
        my-method = "my_package.search:MyMethod"

    The command line knows a method by this name and makes flags of its fields. Plug-ins are imported when the registry
    is read for the first time; one that cannot be used is left out with a warning.

    Args:
        built_in: the methods of butfor by name.

    Examples:
        >>> import butfor
        >>> registry = butfor.methods.METHODS
        >>> registry["greedy"]
        <class 'butfor.methods.greedy.Greedy'>
        >>> list(registry)[:4]
        ['exact', 'greedy', 'descent', 'cf-gnn']
    """

    def __init__(self, built_in: Mapping[str, type[Method]]) -> None:
        self._methods = dict(built_in)
        self._complete = False

    def __getitem__(self, name: str) -> type[Method]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, type[Method]]:
        if not self._complete:
            self._complete = True  # first, because a plug-in may read the registry while it is imported
            plugins = load_plugins(GROUP)
            problems = list(plugins.failures)
            for name, found in plugins.loaded.items():
                if name in self._methods:
                    problems.append(f"a package brings a method named {name}, which there is already")
                elif not _is_method(found):
                    problems.append(
                        f"a package brings {found!r} as the method {name}; it must be a dataclass that "
                        "derives from butfor.methods.Method"
                    )
                else:
                    self._methods[name] = cast("type[Method]", found)
            for problem in problems:
                warnings.warn(problem, RuntimeWarning, stacklevel=4)
        return self._methods


def _is_method(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Method) and is_dataclass(found)
