"""The operations of torch that can be followed, by what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from butfor.oracle.program.trace import Operation

__all__ = [
    "BINARY", "CHOICES", "FOLDS", "FRESH", "MOVES", "PRODUCTS", "QUESTIONS", "REDUCTIONS", "SAME", "UNARY", "done",
]  # fmt: skip

# The same numbers.
SAME = {"clone", "detach", "alias", "_to_copy", "to", "contiguous", "lift_fresh", "lift_fresh_copy"}
# The same numbers elsewhere.
MOVES = {
    "view", "reshape", "_unsafe_view", "_reshape_alias", "select", "slice", "narrow", "expand", "expand_as", "t",
    "transpose", "permute", "movedim", "unsqueeze", "squeeze", "flip", "repeat", "repeat_interleave", "unbind", "split",
    "split_with_sizes", "chunk", "unsafe_chunk", "unsafe_split", "cat", "broadcast_tensors",
}  # fmt: skip
# Some of the numbers, chosen by others.
CHOICES = {"index", "index_select", "masked_select", "gather", "embedding"}
# Functions of single numbers.
UNARY = {
    "relu", "leaky_relu", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "neg", "abs", "sigmoid",
    "tanh", "erf", "sign", "isinf", "isnan", "isfinite", "logical_not", "bitwise_not", "sin", "cos", "floor", "clamp",
    "clamp_min", "clamp_max", "square",
}  # fmt: skip
BINARY = {
    "add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or", "bitwise_and", "bitwise_or", "atan2", "remainder",
}  # fmt: skip
# Products with matrices.
PRODUCTS = {"mm", "addmm", "bmm", "matmul", "baddbmm"}
# One number from many, along an axis.
FOLDS = {"sum", "mean", "amax", "amin", "prod"}
# One number from many, as an index says.
REDUCTIONS = {"scatter_add", "index_add", "scatter_reduce", "index_reduce", "scatter"}
# A new tensor, of which a given one says the size at most.
FRESH = {
    "new_zeros", "new_ones", "new_full", "new_empty", "zeros_like", "ones_like", "empty_like", "full_like", "fill",
    "zero",
}  # fmt: skip
# Sizes and checks: they decide what the code does, and say nothing of single rows.
QUESTIONS = {"_local_scalar_dense", "is_nonzero", "item", "equal", "max", "min", "any", "all", "nonzero"}


def done(operation: Operation, args: Any, kwargs: Any) -> list[Tensor]:
    """Move numbers as an operation moves others; a view of them may need a copy, because they lie otherwise."""
    if operation.name in SAME:
        return [args[0]]
    result = args[0].reshape(args[1]) if "view" in operation.name else operation.function(*args, **kwargs)
    return list(result) if isinstance(result, (list, tuple)) else [result]
