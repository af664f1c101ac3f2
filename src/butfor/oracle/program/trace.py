"""Record one run of a model as tensor operations without side effects.

Operations are recorded where torch dispatches them (`TorchDispatchMode`), below every layer and every Python function:
what PyG's layers, hand-written ones and scripted functions are made of is the same few dozen operations there. Nothing
is compiled and nothing is guessed about the code, so any Python control flow is allowed, as long as it does not depend
on values that edits change; that is noticed when such a value is turned into a Python number.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
import torch_geometric.backend
from torch import Tensor
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import softmax

from butfor.oracle.program.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

__all__ = ["Operation", "Ref", "Trace", "Untraceable", "record", "refs"]

aten = torch.ops.aten

# What torch itself can take apart into simpler operations.
_COMPOSED = get_decompositions(
    [
        aten.native_layer_norm, aten.native_group_norm, aten.gelu, aten.silu, aten.elu, aten.celu, aten.selu,
        aten.softplus, aten.log_sigmoid_forward, aten.hardtanh, aten.hardsigmoid, aten.hardswish, aten.mish,
        aten._softmax, aten._log_softmax, aten.std.correction, aten.std_mean.correction, aten.addcmul, aten.addcdiv,
        aten.norm, aten.linalg_vector_norm, aten.logaddexp, aten.logsumexp, aten.stack, aten.hardshrink,
        aten.softshrink, aten.threshold, aten.rsub, aten._prelu_kernel, aten.linalg_cross,
    ]
)  # fmt: skip


def _variance(
    x: Tensor, dim: Any = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    dims = list(range(x.dim())) if dim is None else list(dim)
    size = math.prod(x.shape[axis] for axis in dims)
    mean = x.mean(dims, keepdim=True)
    square = (x - mean).square().sum(dims, keepdim=keepdim) / max(size - (1 if correction is None else correction), 0)
    return square, mean if keepdim else x.mean(dims)


def _batch_norm(args: tuple[Any, ...], training: bool, eps: float) -> Any:
    """Batch norm by its running statistics, or by those of the nodes where it keeps none."""
    x, weight, bias, mean, variance = args
    if training and mean is not None:
        return NotImplemented
    if mean is None:
        variance, mean = _variance(x, [0], 0)
    scale = (variance + eps).rsqrt() * (1 if weight is None else weight)
    shift = -mean * scale if bias is None else bias - mean * scale
    return x * scale + shift, mean, scale


_COMPOSED |= {
    aten.native_batch_norm.default: lambda *args: _batch_norm(args[:5], args[5], args[7]),
    aten._native_batch_norm_legit_no_training.default: lambda *args: _batch_norm(args[:5], False, args[6]),
    aten.var_mean.correction: _variance,
    aten.var.correction: lambda *args, **kwargs: _variance(*args, **kwargs)[0],
}


# A constant without numbers, which may be any other where there are more rows.
NOTHING = "nothing"

# How many numbers of a large constant are compared.
SEVERAL = 4096

# What comes out depends on no value of what goes in.
_FRESH = {
    "new_zeros", "new_ones", "new_full", "new_empty", "zeros_like", "ones_like", "empty_like", "full_like", "empty",
}  # fmt: skip


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


def _without_size(tensor: Tensor) -> Any:
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


def record(model: nn.Module, run: Callable[[], Tensor], inputs: dict[str, Tensor]) -> Trace:
    """Run a model and record what it does to these inputs.

    PyG's softmax over the edges into a node is recorded as one operation, "edge_softmax"; that a part of a tensor is
    written over as another, "overlay".

    Raises:
        Untraceable: it writes into a tensor that other tensors share their memory with.
    """
    recorder = _Recorder()
    for name, tensor in inputs.items():
        recorder.trace.inputs[name] = recorder.add_input(tensor)
        recorder.trace.sizes[name] = tensor.shape
    known: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (softmax, recorder.softmax),
        (gcn_norm, recorder.gcn_norm),
    ]
    with replaced(model, known), torch.no_grad(), _in_small_steps(), recorder:
        out = run()
    recorder.trace.output = recorder.number(out)
    recorder.trace.values = [value.cpu() for value in recorder.trace.values]
    return recorder.trace


@contextmanager
def _in_small_steps() -> Iterator[None]:
    """Let torch and PyG do step by step what they would otherwise do in one piece, or decide by the sizes of groups."""
    before = torch_geometric.backend.use_segment_matmul
    torch_geometric.backend.use_segment_matmul = False
    try:
        with torch.backends.mkldnn.flags(enabled=False):
            yield
    finally:
        torch_geometric.backend.use_segment_matmul = before


def refs(arguments: Any) -> list[Ref]:
    """All tensors among some arguments."""
    if isinstance(arguments, Ref):
        return [arguments]
    within = arguments.values() if isinstance(arguments, dict) else arguments
    return [ref for one in within for ref in refs(one)] if isinstance(arguments, (dict, list, tuple)) else []


def _name(func: Any) -> str:
    name: str = func._schema.name.removeprefix("aten::")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._numbers: dict[int, int] = {}
        self._following: set[int] = set()  # the numbers of values that follow from the inputs
        self._held: list[Tensor] = []  # so that their ids stay theirs
        self._sharing: dict[int, set[int]] = {}  # the values that live in each piece of memory
        self._overwritten: set[int] = set()
        self._silent = self._counting = False
        self._thread = threading.get_ident()

    def add_input(self, tensor: Tensor) -> int:
        """Give a number to a tensor that the model was given."""
        number = self.add(tensor)
        self._following.add(number)
        return number

    def add(self, tensor: Tensor) -> int:
        """Give a tensor a number."""
        number = len(self.trace.values)
        self._numbers[id(tensor)] = number
        self.trace.values.append(tensor.detach())
        self._held.append(tensor)
        try:
            self._sharing.setdefault(tensor.untyped_storage()._cdata, set()).add(number)
        except NotImplementedError:
            raise Untraceable("a sparse matrix") from None
        return number

    def number(self, tensor: Tensor) -> int:
        """The number of the value that a tensor has now."""
        if id(tensor) not in self._numbers:
            number = self.add(tensor)
            self.trace.constants[number] = _without_size(tensor)
        number = self._numbers[id(tensor)]
        if number in self._overwritten:
            raise Untraceable("a tensor that is written into through another one")
        return number

    def softmax(self, *args: Any, **kwargs: Any) -> Any:
        """PyG's softmax, as one operation."""
        if threading.get_ident() != self._thread or self._silent:
            return softmax(*args, **kwargs)
        given, named = tree_map(self._ref, (args, kwargs))
        self._silent = True
        try:
            out = softmax(*args, **kwargs)
            number = self.add_input(out)
        finally:
            self._silent = False
        self.trace.operations.append(Operation("edge_softmax", softmax, given, named, (number,)))
        return out

    def gcn_norm(self, *args: Any, **kwargs: Any) -> Any:
        """PyG's normalisation by degrees, whose operations are marked."""
        if threading.get_ident() != self._thread:
            return gcn_norm(*args, **kwargs)
        self._counting = True
        try:
            return gcn_norm(*args, **kwargs)
        finally:
            self._counting = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._silent:
            return func(*args, **kwargs)
        if func in _COMPOSED:
            with self:
                out = _COMPOSED[func](*args, **kwargs)
            if out is not NotImplemented:
                return out
        given, named = tree_map(self._ref, (args, kwargs))
        written = self._written(func, args, kwargs)
        wholes = [(tensor, self._save(tensor)) for tensor in written]
        out = func(*args, **kwargs)
        if written:
            outputs = tuple(self.add(tensor) for tensor in written)
        else:
            outputs = tuple(self.add(tensor) for tensor in _tensors(out))
        operation = Operation(_name(func), func, given, named, outputs, self._counting)
        self.trace.operations.append(operation)
        if operation.name not in _FRESH and any(ref.number in self._following for ref in operation.refs):
            self._following.update(outputs)
        elif "empty" not in operation.name:
            for number, tensor in zip(outputs, written or _tensors(out), strict=True):
                self.trace.constants[number] = _without_size(tensor)
        for part, numbers in wholes:
            self._overlay(part, numbers)
        return out

    def _ref(self, value: Any) -> Any:
        return Ref(self.number(value)) if isinstance(value, Tensor) else value

    @staticmethod
    def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        """The arguments that an operation writes into."""
        if not func._schema.is_mutable:
            return []
        found = []
        for position, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[position] if position < len(args) else kwargs.get(argument.name)
                if isinstance(value, Tensor):
                    found.append(value)
        return found

    def _save(self, tensor: Tensor) -> list[int]:
        """Keep what a tensor is before it is written into, and what shares its memory.

        Returns the numbers of values that it is a part of; others that share its memory are not to be used any more.
        """
        mine, sharing = self.number(tensor), self._sharing[tensor.untyped_storage()._cdata]
        lost = {number for number in sharing if number == mine or _overlap(self.trace.values[number], tensor).any()}
        for number in lost:
            self.trace.values[number] = self.trace.values[number].clone()
        sharing -= lost
        wholes = [number for number in lost - {mine} if bool(_overlap(self._held[number], tensor).all())]
        self._overwritten |= lost - {mine}
        return wholes

    def _overlay(self, part: Tensor, wholes: list[int]) -> None:
        """What a tensor was written into has a new value, the same but for that part: the operation "overlay"."""
        for number in wholes:
            whole = self._held[number]
            new = Ref(self._numbers[id(part)])
            places = _places(whole)[_where(part)]
            self._overwritten.discard(number)
            operation = Operation("overlay", None, (Ref(number), new), {"places": places}, (self.add(whole),))
            self.trace.operations.append(operation)
            if {number, new.number} & self._following:
                self._following.update(operation.outputs)


def _tensors(out: Any) -> list[Tensor]:
    return [tensor for tensor in tree_flatten(out)[0] if isinstance(tensor, Tensor)]


def _where(tensor: Tensor) -> Tensor:
    """Where in its piece of memory each number of a tensor is."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    return torch.arange(size).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _places(tensor: Tensor) -> Tensor:
    """For each number of a piece of memory, which number of the tensor it is; -1 where it is none."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    places = torch.full((size,), -1)
    places[_where(tensor)] = torch.arange(tensor.numel()).reshape(tensor.shape)
    return places


def _overlap(whole: Tensor, part: Tensor) -> Tensor:
    """Which numbers of a tensor are also numbers of another, in the same piece of memory."""
    return _places(whole)[_where(part)] >= 0
