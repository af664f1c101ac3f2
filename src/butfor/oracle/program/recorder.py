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
from butfor.oracle.program.trace import Operation, Ref, Trace, Untraceable, without_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

__all__ = ["record"]

aten = torch.ops.aten

# What torch itself can take apart into simpler operations.
_COMPOSED = get_decompositions(
    [
        aten.native_layer_norm, aten.native_group_norm, aten.gelu, aten.silu, aten.elu, aten.celu, aten.selu,
        aten.softplus, aten.log_sigmoid_forward, aten.hardtanh, aten.hardsigmoid, aten.hardswish, aten.mish,
        aten._softmax, aten._log_softmax, aten.std.correction, aten.std_mean.correction, aten.addcmul, aten.addcdiv,
        aten.norm, aten.linalg_vector_norm, aten.logaddexp, aten.logsumexp, aten.hardshrink,
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


def _stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Along an axis of its own, so that rows never share one with what is stacked."""
    return torch.cat([tensor.unsqueeze(dim) for tensor in tensors], dim)


_COMPOSED |= {
    aten.stack.default: _stack,
    aten.native_batch_norm.default: lambda *args: _batch_norm(args[:5], args[5], args[7]),
    aten._native_batch_norm_legit_no_training.default: lambda *args: _batch_norm(args[:5], False, args[6]),
    aten.var_mean.correction: _variance,
    aten.var.correction: lambda *args, **kwargs: _variance(*args, **kwargs)[0],
}


# What comes out depends on no value of what goes in.
_FRESH = {
    "new_zeros", "new_ones", "new_full", "new_empty", "zeros_like", "ones_like", "empty_like", "full_like", "empty",
}  # fmt: skip


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


def _name(func: Any) -> str:
    name: str = func._schema.name.removeprefix("aten::")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = Trace()
        self._numbers: dict[int, int] = {}
        self._held: list[Tensor] = []  # so that their ids stay theirs
        self._sharing: dict[int, set[int]] = {}  # the values that live in each piece of memory
        self._overwritten: set[int] = set()
        self._silent = self._counting = False
        self._thread = threading.get_ident()

    def add_input(self, tensor: Tensor) -> int:
        """Give a number to a tensor that the model was given."""
        number = self.add(tensor)
        self.trace.following.add(number)
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
            self.trace.constants[number] = without_size(tensor)
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
        if operation.name not in _FRESH and any(ref.number in self.trace.following for ref in operation.refs):
            self.trace.following.update(outputs)
        elif "empty" not in operation.name:
            for number, tensor in zip(outputs, written or _tensors(out), strict=True):
                self.trace.constants[number] = without_size(tensor)
        else:
            self.trace.empty.update(outputs)
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
        wholes = [number for number in sorted(lost - {mine}) if bool(_overlap(self._held[number], tensor).all())]
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
            if {number, new.number} & self.trace.following:
                self.trace.following.update(operation.outputs)
            else:
                self.trace.constants[operation.outputs[0]] = without_size(whole)


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
