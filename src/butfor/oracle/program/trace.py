"""One run of a model: its operations in order, and what two runs on graphs of different sizes do differently."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

__all__ = ["Operation", "Ref", "Trace", "Untraceable", "refs", "without_size"]

# A constant without numbers, which may be any other where there are more rows.
NOTHING = "nothing"

# Of constants with more numbers than that, a digest is compared.
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
        following: the numbers of what follows from the inputs.
        constants: what does not, in a form that does not show how large it is.
        empty: the numbers of tensors that nothing has been written into.
        placed: what the lowering found to be done by numbers that depend on sizes, in terms that do not
            (`lowering/blocks.py`): by the number of what an operation computes, or of a constant.
        made: what the lowering found a row to be made of, or an index: by its number.
    """

    operations: list[Operation] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, torch.Size] = field(default_factory=dict)
    output: int = -1
    following: set[int] = field(default_factory=set)
    constants: dict[int, Any] = field(default_factory=dict)
    empty: set[int] = field(default_factory=set)
    placed: dict[int, list[Any]] = field(default_factory=dict)
    made: dict[int, Any] = field(default_factory=dict)

    def sizes_differ(self, other: Trace) -> bool:
        """Whether all inputs are of other sizes in another run."""
        return all(size != other.sizes[name] for name, size in self.sizes.items())

    def difference(self, other: Trace) -> str:
        """What two runs on graphs of different sizes do differently; empty where they do the same to every row.

        Sizes of tensors may differ, and numbers that only say where rows begin and end, or of which it is known what
        they do (`placed`). Any other number must not depend on the size of the graph. What is done to constants alone
        is not compared, but what comes of it, where it is used.
        """
        mine, theirs = self._compared, other._compared
        if len(mine.operations) != len(theirs.operations):
            return "more operations on one graph than on another"
        for one, two in zip(mine.operations, theirs.operations, strict=True):
            places = all(some.outputs and some.outputs[0] in run.placed for some, run in ((one, self), (two, other)))
            if one.name != two.name or mine.plain(one, places) != theirs.plain(two, places):
                return f"the operation {one.name}, whose arguments depend on the size of the graph"
        for here, there in zip(mine.numbers, theirs.numbers, strict=True):
            if here in self.made and there in other.made and not _same(self.made[here], other.made[there]):
                return "rows or edges that are made of something else on another graph"
            if not mine.reads(here) or (mine.is_placed(here) and theirs.is_placed(there)):
                continue
            first, second = self.constants.get(here, NOTHING), other.constants.get(there, NOTHING)
            if first != second and NOTHING not in (first, second):
                return "a constant that depends on the size of the graph"
        return "" if _agree(mine.placed, theirs.placed) else "rows that stand elsewhere on another graph"

    @cached_property
    def _compared(self) -> _Compared:
        return _Compared(self)


class _Compared:
    """What of a run is compared with another: operations on what follows from the inputs, and all tensors in these.

    Attributes:
        operations: in order.
        numbers: of the tensors, in the order in which they first appear: equal places there, equal tensors.
        placed: what is done by numbers that depend on sizes, by places in that order.
    """

    def __init__(self, trace: Trace) -> None:
        self.operations = [one for one in trace.operations if any(ref.number in trace.following for ref in one.refs)]
        # A copy only writes into its first argument.
        self._uses = Counter(ref.number for one in self.operations for ref in one.refs[one.name == "copy" :])
        self._uses[trace.output] += 1
        every = [number for one in self.operations for number in (*(ref.number for ref in one.refs), *one.outputs)]
        self.numbers = list(dict.fromkeys([*every, trace.output]))
        self._place = {number: place for place, number in enumerate(self.numbers)}
        self._noted = trace.placed
        self.placed = {self._place.get(number, -1): what for number, what in trace.placed.items()}

    def reads(self, number: int) -> bool:
        """Whether anything follows from the numbers of a tensor."""
        return self._uses[number] > 0

    def is_placed(self, number: int) -> bool:
        """Whether it is known of every use of a constant what it says, whatever the sizes."""
        return 0 < self._uses[number] == len(self._noted.get(number, ()))

    def plain(self, operation: Operation, places: bool) -> Any:
        """An operation's arguments without the size of the graph; ``places`` says that its whole numbers are places."""
        args, kwargs = _plain(operation, places)
        outputs = [self._place[number] for number in operation.outputs]
        return tree_map(lambda one: self._place[one.number] if isinstance(one, Ref) else one, (args, kwargs)), outputs


def _agree(one: dict[Any, list[Any]], other: dict[Any, list[Any]]) -> bool:
    """Whether two runs do the same by numbers that depend on sizes."""
    return one.keys() == other.keys() and all(
        len(what) == len(other[key]) and all(map(_same, what, other[key])) for key, what in one.items()
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two notes are the same; of relations, whether those are that both runs have edges of."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(one[key] == other[key] for key in one.keys() & other.keys())
    return bool(one == other)


# Operations whose whole numbers say where rows begin and end; those of the others in lists are sizes.
_PLACES = {
    "view", "reshape", "_unsafe_view", "_reshape_alias", "slice", "narrow", "expand", "split", "split_with_sizes",
    "arange", "repeat", "edge_softmax", "bincount",
}  # fmt: skip
_SIZED = {"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "new_empty"}


def _plain(operation: Operation, places: bool) -> Any:
    """The arguments without the size of the graph."""
    ignored: tuple[type, ...] = (list, tuple) if operation.name in _SIZED else (int,) if places else ()
    ignored = (int, list, tuple) if operation.name in _PLACES else ignored

    def kept(argument: Any) -> Any:
        size = isinstance(argument, Tensor) or (isinstance(argument, ignored) and not isinstance(argument, bool))
        # What is not a number is not equal to itself.
        return "size" if size else str(argument) if isinstance(argument, float) else argument

    args = [kept(argument) for argument in operation.args]
    return args, {name: kept(argument) for name, argument in operation.kwargs.items()}


def without_size(tensor: Tensor) -> Any:
    """A constant as something to compare: one number or row if it has no other, what counts as that, else as it is."""
    flat = tensor.detach().reshape(-1)
    if not len(flat) or bool((flat == flat[0]).all()):
        return NOTHING if not len(flat) else str(float(flat[0]))
    if not tensor.is_floating_point() and bool((tensor == torch.arange(tensor.shape[-1], device=tensor.device)).all()):
        return "counting"
    rows = tensor.detach().reshape(len(tensor), -1)
    if bool((rows == rows[:1]).all()):
        return _numbers(rows[0])
    # Parameters are themselves in every run; of what else is large, its size counts.
    return tensor.data_ptr() if isinstance(tensor, torch.nn.Parameter) else (tuple(tensor.shape), _numbers(flat))


def _numbers(flat: Tensor) -> Any:
    """These numbers as something to compare."""
    if len(flat) <= SEVERAL:
        return tuple(flat.tolist())
    return sha256(flat.cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def refs(arguments: Any) -> list[Ref]:
    """All tensors among some arguments."""
    if isinstance(arguments, Ref):
        return [arguments]
    within = arguments.values() if isinstance(arguments, dict) else arguments
    return [ref for one in within for ref in refs(one)] if isinstance(arguments, (dict, list, tuple)) else []
