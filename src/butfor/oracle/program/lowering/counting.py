"""What numbers of nodes count: the nodes of one type or of several, each type from a number on.

Numbers of nodes say where rows stand, and only that. Whose rows an index is about cannot be read off the numbers, nor
off how many rows there are: types may have equally many nodes. So each entry of an index carries what it counts, from
the edge index of its relation on. Where there are no edges, one entry stands for those that there may be on other
graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from butfor.oracle.program.lowering.operations import done

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from torch import Tensor

    from butfor.oracle.program.trace import Operation

__all__ = ["NO_NODES", "Counted", "Counting", "at_least_one", "compact", "distinct"]

# What numbers count that are none of nodes.
NO_NODES = -1

# Numbers are counted on from a few places, where tables begin; from more, each from one of its own.
MANY_PLACES = 1000


class Counted(NamedTuple):
    """The nodes of a type in order, the first of which has the number ``first``."""

    node_type: str
    first: int = 0


class Counting:
    """All that numbers count in one run, numbered: tensors have these numbers, of the shape of an index.

    Along an axis of an index without entries such a tensor has one.
    """

    def __init__(self) -> None:
        self._known: list[frozenset[Counted]] = []

    def number(self, counted: frozenset[Counted]) -> int:
        """The number of what is counted."""
        if counted not in self._known:
            self._known.append(counted)
        return self._known.index(counted)

    def of(self, counting: Tensor) -> frozenset[Counted] | None:
        """All that entries count; None where some are no numbers of nodes."""
        numbers = set(distinct(counting).reshape(-1).tolist())
        return None if NO_NODES in numbers else frozenset().union(*(self._known[number] for number in numbers))

    def union(self, counting: Tensor, axis: int | None = None) -> Tensor:
        """The same where entries that follow each other along an axis, or all, may each count what any of them does."""
        counting = distinct(counting, axis)
        if axis is not None and counting.stride(axis) == 0:
            counting = counting.narrow(axis, 0, 1)
        lines = counting.reshape(1, -1) if axis is None else counting.movedim(axis, -1)
        joined = torch.tensor([self._number_of(line) for line in lines.reshape(-1, lines.shape[-1])])
        return joined.reshape(()) if axis is None else joined.reshape(*lines.shape[:-1], 1).movedim(-1, axis)

    def counted_on(self, counting: Tensor, by: Tensor) -> Tensor | None:
        """The same where numbers are larger by others; None where these are no places, or numbers are none of nodes."""
        try:
            both = np.broadcast_arrays(distinct(counting).numpy(), distinct(by).numpy())
        except ValueError:  # no entries, along an axis where there is one that stands for others
            return None
        pairs, which = np.unique(np.stack([one.reshape(-1) for one in both]), axis=1, return_inverse=True)
        if pairs.shape[1] > MANY_PLACES or (pairs < 0).any():
            return None
        counted = [(self._known[number], more) for number, more in pairs.T.tolist()]
        numbers = [self.number(frozenset(Counted(kind, first + more) for kind, first in one)) for one, more in counted]
        return torch.from_numpy(np.array(numbers)[which].reshape(both[0].shape)).expand(counting.shape)

    def _number_of(self, line: Tensor) -> int:
        counted = self.of(line)
        return NO_NODES if counted is None else self.number(counted)

    def moved(self, operation: Operation, args: Any, kwargs: Any, shapes: Sequence[torch.Size]) -> list[Tensor]:
        """What is counted after a move that gave these shapes; arguments have what is counted in place of numbers.

        The move is done to it as well. Where an axis has no entries, that may fail, because sizes are named.
        """
        try:
            found = done(operation, args, kwargs)
        except (IndexError, RuntimeError):
            found = []
        wanted = [at_least_one(shape) for shape in shapes]
        if [list(one.shape) for one in found] == wanted:
            return found
        if len(found) == 1 and operation.name == "cat":
            # Parts without entries have one each.
            axis = args[1] if len(args) > 1 else 0
            joined = self.union(found[0], axis)
            if all(size in (1, other) for size, other in zip(joined.shape, wanted[0], strict=True)):
                return [joined.expand(wanted[0])]
        every = self.union(torch.cat([one.reshape(-1) for one in _tensors(args)]))
        return [every.expand(shape) for shape in wanted]


def distinct(tensor: Tensor, kept: int | None = None) -> Tensor:
    """The same numbers, those that an expanded tensor repeats only once: an index may be as wide as the features.

    Along the axis ``kept`` all of them stay.
    """
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] and axis != kept:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def compact(tensor: Tensor) -> Tensor:
    """The same tensor, of which axes along which nothing differs take no memory."""
    shape = tensor.shape
    for axis, size in enumerate(shape):
        first = tensor.narrow(axis, 0, 1)
        if size > 1 and tensor.stride(axis) and bool((tensor == first).all()):
            tensor = first
    return tensor.expand(shape)


def at_least_one(shape: Sequence[int]) -> list[int]:
    """A shape whose axes without entries have one."""
    return [max(size, 1) for size in shape]


def _tensors(args: Any) -> list[Tensor]:
    if isinstance(args, torch.Tensor):
        return [args]
    return [found for one in args for found in _tensors(one)] if isinstance(args, (list, tuple)) else []
