"""One number from many: folds along an axis, and what arrives at each node along its edges."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.oracle.program.lowering.blocks import receivers_of
from butfor.oracle.program.lowering.counting import distinct
from butfor.oracle.program.lowering.facts import Index, Rows, columns_of, flat_rows, row_width
from butfor.oracle.program.lowering.products import product
from butfor.oracle.program.steps import Concat, Fold, Gather, Map, Reduce, Value, made
from butfor.oracle.program.trace import Ref, Untraceable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.oracle.program.lowering.facts import Facts
    from butfor.oracle.program.trace import Operation

__all__ = ["count", "extreme", "fold", "reduce", "softmax"]


# Along an axis.


def extreme(facts: Facts, operation: Operation) -> None:
    """A maximum or minimum; that of two tensors is another operation."""
    if len(operation.args) > 1 and not isinstance(operation.args[1], int):
        raise Untraceable("a decision that depends on the values of nodes")
    fold(facts, operation, f"a{operation.name}")


def fold(facts: Facts, operation: Operation, code: str | None = None) -> None:
    """A sum, mean or maximum within each row, over all rows, or both."""
    code = code or operation.name
    fact = facts.rows(operation.args[0])
    dims = operation.args[1] if len(operation.args) > 1 else operation.kwargs.get("dim")
    keep = operation.args[2] if len(operation.args) > 2 else operation.kwargs.get("keepdim", False)
    axes = [dims] if isinstance(dims, int) else list(dims or range(len(fact.shape)))
    axes = [axis % len(fact.shape) for axis in axes]
    over_rows = fact.axis is not None and fact.axis in axes
    if len(axes) == over_rows:
        _fold_rows(facts, operation, code, fact.value, fact, keep)
        return
    kept = [1 if axis in axes else size for axis, size in enumerate(fact.shape) if axis != fact.axis]
    groups = torch.arange(math.prod(kept)).reshape(kept).expand(fact.inner).reshape(-1).numpy()
    within = Fold([fact.value], code, groups)
    if over_rows:
        _fold_rows(facts, operation, code, made(within, fact.space, math.prod(kept)), fact, keep)
        return
    axis = fact.axis
    if axis is not None and not keep:
        axis -= sum(one < axis for one in axes)
    facts.put(operation, within, fact.space, axis)


def _fold_rows(facts: Facts, operation: Operation, code: str, value: Value, fact: Rows, keep: bool) -> None:
    """A sum, mean or maximum over all rows: what the graph as a whole has."""
    if code not in ("sum", "mean", "amax", "amin") or (code == "mean" and fact.space.columns is not None):
        raise Untraceable(f"a {code} over all edges")
    if code in ("amax", "amin") and _is_settled(facts, operation.args[0], fact, code):
        facts.put(operation, Fold([value], code, np.empty(0, np.int64)), facts.graph, fact.axis if keep else None, True)
        return
    facts.beyond.append(f"a {code} over all rows")
    facts.reads_all = True
    size, axis = fact.space.size, fact.axis if keep else None
    entry = np.arange(size)
    edges = fact.space.edges
    step = Reduce([value], "sum" if code == "mean" else code, entry * 0, entry, edges)
    fixed = value.fixed and bool((edges < 0).all())
    if code != "mean":
        facts.put(operation, step, facts.graph, axis, fixed)
        return
    total = Value(facts.graph, value.width, step=step)
    share = Value(None, 1, np.full((1, 1), 1 / size))
    scaled = Map([total, share], "mul", [None, np.zeros(value.width, dtype=np.int64)])
    facts.put(operation, scaled, facts.graph, axis, fixed)


def _is_settled(facts: Facts, argument: Ref, fact: Rows, code: str) -> bool:
    """Whether a row that is always there and never changes is as large, or small, in each column as any row can be.

    Then the extreme is that number whatever is edited, and whatever lies outside a neighbourhood.
    """
    bounds = facts.ranges.of(argument)
    lasting = _lasting_rows(fact.value) & (fact.space.edges < 0)
    if bounds is None or not lasting.any():
        return False
    rows = flat_rows(facts.tensor(argument), fact.axis)[lasting]
    settled = rows.max(axis=0) == bounds.high if code == "amax" else rows.min(axis=0) == bounds.low
    return bool(settled.all())


def _lasting_rows(value: Value) -> NDArray[np.bool_]:
    """Which rows no edit changes."""
    if isinstance(value.step, Concat):
        return np.concatenate([_lasting_rows(one) for one in value.step.inputs])
    return np.full(value.rows, value.fixed)


# Along the edges.


def reduce(facts: Facts, operation: Operation) -> None:
    """What arrives at each node along its edges."""
    given = _given(operation, "input", "dim", "index", "src", "reduce")
    start, source = facts.tensor(given["input"]), given.get("src", given.get("source"))
    dim = given["dim"] % max(start.dim(), 1)
    code = "sum" if operation.name in ("scatter_add", "index_add") else str(given.get("reduce"))
    empty = flat_rows(start, dim)
    if facts.fact(given["input"]) is not None or not isinstance(source, Ref) or not _is_plain(given, code, empty):
        raise Untraceable(f"the operation {operation.name} ({code})")
    receiver, origin = _receivers(facts, given["index"], dim)
    value, origin = _messages(facts, source, dim, receiver, origin)
    edges = np.full(len(receiver), -1) if origin is None else origin
    start_value = float(empty.flat[0]) if empty.size and code != "prod" else 0.0
    receivers = receivers_of(facts, given["index"], start.shape[dim])
    reduction = Reduce(
        [value], "sum" if code == "prod" else code, receiver, np.arange(len(receiver)), edges, start_value,
        counts=operation.counts, against=_is_against(facts, given["index"]),
    )  # fmt: skip

    def add_up(one: Value) -> Value:
        return Value(receivers, one.width, step=replace(reduction, inputs=[one]))

    step = product(value, receivers, add_up) if code == "prod" else reduction
    facts.put(operation, step, receivers, dim, fixed=value.fixed and _never_changes(facts, given["index"], edges))


def _is_plain(given: dict[str, Any], code: str, empty: NDArray[np.float64]) -> bool:
    """Whether it is a sum, product, maximum or minimum of what arrives, and one number where nothing does."""
    if code not in ("sum", "prod", "amax", "amin") or given.get("alpha", 1) != 1:
        return False
    if empty.size and bool((empty != empty.flat[0]).any()):
        return False
    if code == "prod":
        return bool((empty == 1).all())
    return not empty.any() if code == "sum" else not given.get("include_self", True)


def _messages(
    facts: Facts, source: Ref, dim: int, receiver: NDArray[np.int64], origin: NDArray[np.int64] | None
) -> tuple[Value, NDArray[np.int64] | None]:
    """What arrives, a row for each entry, and the edge that each is."""
    fact = facts.fact(source)
    if isinstance(fact, Rows):
        columns = fact.space.columns
        if fact.axis != dim or fact.space.size != len(receiver):
            raise Untraceable("a reduction along another axis than the rows")
        if origin is not None and columns is not None and not np.array_equal(origin, columns):
            raise Untraceable("messages and receivers of different edges")
        return fact.value, columns if origin is None else origin
    if origin is None:
        raise Untraceable("a reduction that does not follow the edges")
    return facts.constant(facts.tensor(source), facts.edge_space(origin), dim), origin


def count(facts: Facts, operation: Operation) -> None:
    """How many edges lead to each node."""
    receiver, origin = _receivers(facts, operation.args[0], 0)
    assert origin is not None
    if len(operation.args) > 1 and operation.args[1] is not None:
        raise Untraceable("the operation bincount with weights")
    size = len(facts.output(operation))
    if int(receiver.max(initial=-1)) + 1 == size > (operation.args[2] if len(operation.args) > 2 else 0):
        raise Untraceable("a number of counts that depends on the edges")
    one = Value(facts.edge_space(origin), 1, np.ones((len(origin), 1)))
    step = Reduce([one], "sum", receiver, np.arange(len(receiver)), origin)
    step.against = _is_against(facts, operation.args[0])
    facts.put(
        operation,
        step,
        receivers_of(facts, operation.args[0], size),
        0,
        fixed=_never_changes(facts, operation.args[0], origin),
    )


def _never_changes(facts: Facts, index: Ref, edges: NDArray[np.int64]) -> bool:
    """Whether no edge leads anywhere, in any graph.

    Where other edges bring what a node says to the target, edges of this kind may lead to that node outside the
    neighbourhood: a reduction without edges stays one, so that this can be seen.
    """
    return bool((edges < 0).all()) and not (facts.has_edges and isinstance(facts.fact(index), Index))


def softmax(facts: Facts, operation: Operation) -> None:
    """PyG's softmax over the edges into each node."""
    given = _given(operation, "src", "index", "ptr", "num_nodes", "dim")
    fact, index = facts.fact(given["src"]), given.get("index")
    dim = given.get("dim", 0)
    if not isinstance(fact, Rows) or index is None or dim % len(fact.shape) != fact.axis:
        raise Untraceable("a softmax along another axis than the rows")
    receiver, origin = _receivers(facts, index, 0)
    if origin is None or fact.space.columns is None or not np.array_equal(origin, fact.space.columns):
        raise Untraceable("a softmax over other groups than the edges into a node")
    value, space, width = fact.value, fact.space, fact.value.width
    size = given.get("num_nodes")
    size = int(receiver.max(initial=-1)) + 1 if size is None else int(size)
    receivers = receivers_of(facts, index, size)
    entries = np.arange(space.size)
    against = _is_against(facts, index)
    highest = Value(receivers, width, step=Reduce([value], "shift", receiver, entries, origin, against=against))
    shift = Value(space, width, step=Gather([highest], receiver))
    shifted = Value(space, width, step=Map([value, shift], "sub", [None, None]))
    power = Value(space, width, step=Map([shifted], "exp", [None]))
    total = Value(receivers, width, step=Reduce([power], "share", receiver, entries, origin, against=against))
    tiny = Value(None, 1, np.full((1, 1), 1e-16))
    positive = Value(receivers, width, step=Map([total, tiny], "add", [None, np.zeros(width, dtype=np.int64)]))
    divisor = Value(space, width, step=Gather([positive], receiver))
    facts.put(operation, Map([power, divisor], "div", [None, None]), space, fact.axis)


def _given(operation: Operation, *names: str) -> dict[str, Any]:
    """The arguments by their names."""
    return dict(zip(names, operation.args, strict=False)) | operation.kwargs


def _receivers(facts: Facts, index: Ref, dim: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """The row that each entry leads to, and the edge that it is."""
    tensor, fact = facts.tensor(index), facts.fact(index)
    axis = dim if tensor.dim() > 1 else 0
    lines = _lines(distinct(tensor, axis), axis)
    if isinstance(fact, Rows) or not bool((lines == lines[:, :1]).all()):
        raise Untraceable("a reduction with another index for each feature")
    receiver = lines[:, 0].long().numpy()
    if fact is None:
        facts.beyond.append("a reduction that does not follow the edges")
        return receiver, None
    origin = _lines(distinct(fact.origin, axis), axis)[:, 0]
    facts.reads_all |= not fact.of_nodes  # all edges that carry the same are added up
    return receiver, columns_of(origin).numpy()


def _is_against(facts: Facts, index: Ref) -> bool:
    """Whether an index has the ends of edges that messages are known to come from."""
    fact = facts.fact(index)
    if not isinstance(fact, Index):
        return False
    origin = distinct(fact.origin)
    return bool(((origin >= 0) & (origin % 2 != facts.receiving)).any())


def _lines(tensor: Tensor, axis: int) -> Tensor:
    """A line for each place along an axis."""
    return tensor.movedim(axis, 0).reshape(tensor.shape[axis], row_width(tensor, axis))
