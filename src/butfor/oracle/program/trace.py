"""One run of a model: its operations in order, and what two runs on graphs of different sizes do differently."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

__all__ = ["Operation", "Ref", "Trace", "Untraceable", "refs", "without_size"]

# A constant without numbers, which may be any other where there are more rows.
NOTHING = "nothing"

# How many numbers of a large constant are compared.
SEVERAL = 4096


class Untraceable(Exception):
    """What about a model cannot be written as a program."""


@dataclass(frozen=True)
class Ref:
    """A tensor among the arguments of an operation, by the number of its value."""

    number: int


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation: what was called, with which arguments, and the numbers of what came out.

    Attributes:
        name: what torch calls it; the version that writes into its argument has the same name.
        function: what was called.
        args, kwargs: with a `Ref` for each tensor.
        outputs: the numbers of what came out.
        counts: whether it is part of the normalisation by degrees that GCN does.
    """

    name: str
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[int, ...]
    counts: bool = False

    @cached_property
    def refs(self) -> list[Ref]:
        """All tensors among the arguments."""
        return refs((self.args, self.kwargs))


@dataclass
class Trace:
    """One run: its operations in order, and the value of every tensor, which is never written over.

    Attributes:
        operations: in order.
        values: by their numbers.
        inputs: the numbers of what the model was given, by name.
        sizes: their shapes.
        output: the number of what it returned.
        constants: what does not follow from the inputs, in a form that does not show how large it is.
    """

    operations: list[Operation] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, torch.Size] = field(default_factory=dict)
    output: int = -1
    constants: dict[int, Any] = field(default_factory=dict)

    def sizes_differ(self, other: Trace) -> bool:
        """Whether all inputs are of other sizes in another run."""
        return all(size != other.sizes[name] for name, size in self.sizes.items())

    def difference(self, other: Trace) -> str:
        """What two runs on graphs of different sizes do differently; empty where they do the same to every row.

        Sizes of tensors may differ, and numbers that only say where rows begin and end. Any other number must not
        depend on the size of the graph.
        """
        if len(self.operations) != len(other.operations):
            return "more operations on one graph than on another"
        for one, two in zip(self.operations, other.operations, strict=True):
            if one.name != two.name or _plain(one) != _plain(two):
                return f"the operation {one.name}, whose arguments depend on the size of the graph"
        for number, one in self.constants.items():
            two = other.constants.get(number, one)
            if one != two and NOTHING not in (one, two):
                return "a constant that depends on the size of the graph"
        return ""


# Operations whose whole numbers say where rows begin and end; those of the others in lists are sizes.
_PLACES = {
    "view", "reshape", "_unsafe_view", "_reshape_alias", "slice", "narrow", "expand", "split", "split_with_sizes",
    "arange", "repeat", "edge_softmax", "bincount",
}  # fmt: skip
_SIZED = {"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "new_empty"}


def _plain(operation: Operation) -> Any:
    """The arguments without the size of the graph."""
    ignored = (int, list, tuple) if operation.name in _PLACES else (list, tuple) if operation.name in _SIZED else ()

    def kept(argument: Any) -> Any:
        size = isinstance(argument, Tensor) or (isinstance(argument, ignored) and not isinstance(argument, bool))
        # What is not a number is not equal to itself.
        return "size" if size else str(argument) if isinstance(argument, float) else argument

    args = [kept(argument) for argument in operation.args]
    return args, {name: kept(argument) for name, argument in operation.kwargs.items()}, operation.outputs


def without_size(tensor: Tensor) -> Any:
    """A constant as something to compare: one number or row if it has no other, what counts as that, else as it is."""
    flat = tensor.detach().reshape(-1)
    if not len(flat) or bool((flat == flat[0]).all()):
        return NOTHING if not len(flat) else str(float(flat[0]))
    if not tensor.is_floating_point() and bool((tensor == torch.arange(tensor.shape[-1], device=tensor.device)).all()):
        return "counting"
    rows = tensor.detach().reshape(len(tensor), -1)
    if bool((rows == rows[:1]).all()):
        return tuple(rows[0, :SEVERAL].tolist())
    # Parameters are themselves in every run; of what else is large, its size counts.
    return (
        tensor.data_ptr() if isinstance(tensor, torch.nn.Parameter) else (tuple(tensor.shape), flat[:SEVERAL].tolist())
    )


def refs(arguments: Any) -> list[Ref]:
    """All tensors among some arguments."""
    if isinstance(arguments, Ref):
        return [arguments]
    within = arguments.values() if isinstance(arguments, dict) else arguments
    return [ref for one in within for ref in refs(one)] if isinstance(arguments, (dict, list, tuple)) else []
