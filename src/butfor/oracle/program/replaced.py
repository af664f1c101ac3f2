"""Let a model's layers see other functions under the names that they imported."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import nn

__all__ = ["replaced"]


@contextmanager
def replaced(model: nn.Module, pairs: Sequence[tuple[Callable[..., Any], Callable[..., Any]]]) -> Iterator[None]:
    """While inside, modules that define the model's layers find the second function of a pair where the first was."""
    names = {kind.__module__ for module in model.modules() for kind in type(module).__mro__}
    spaces = [vars(sys.modules[name]) for name in names if name in sys.modules]
    held = [(space, name, value) for space in spaces for name, value in list(space.items())]
    found = [(space, name, old, new) for space, name, value in held for old, new in pairs if value is old]
    try:
        for space, name, _, new in found:
            space[name] = new
        yield
    finally:
        for space, name, old, _ in found:
            space[name] = old
