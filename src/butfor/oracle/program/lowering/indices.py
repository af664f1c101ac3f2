"""What is done to indices: to the numbers and truth values that follow from the edges.

An index is a constant of the neighbourhood; what has to be known of it is the edge that each entry comes from, its
*origin*. So what is done to the numbers is done to their origins.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from butfor.oracle.program.lowering.counting import NO_NODES, at_least_one, compact, distinct
from butfor.oracle.program.lowering.facts import Index, Lost, Rows, columns_of, flat_rows, no_count, row_width
from butfor.oracle.program.lowering.operations import done
from butfor.oracle.program.steps import Value
from butfor.oracle.program.trace import Ref, Untraceable, refs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butfor.oracle.program.lowering.facts import Facts
    from butfor.oracle.program.trace import Operation

__all__ = ["ask", "choose", "compare", "mark_labels", "move", "overlay"]


def ask(facts: Facts, operation: Operation) -> None:
    """A maximum over all edges, a decision: the largest number of a node says how many there are, and that only."""
    given = [fact for ref in operation.refs if isinstance(fact := facts.fact(ref), Index)]
    is_size = operation.name in ("max", "min") and all(fact.of_nodes for fact in given)
    if not operation.outputs:
        raise Untraceable("a decision that depends on the edges")
    for number in operation.outputs:
        facts.known[number] = Lost(f"the operation {operation.name} over all edges", is_size)


def move(facts: Facts, operation: Operation) -> None:
    """Entries elsewhere, some of them only, or several indices one behind the other."""
    args, kwargs = tree_map(lambda argument: _origin(facts, argument), (operation.args, operation.kwargs))
    given = [fact for ref in operation.refs if isinstance(fact := facts.fact(ref), Index)]
    moved = done(operation, args, kwargs)
    if _some_are_gone([fact.origin for fact in given], moved):
        facts.beyond.append("some edges chosen by where they stand")
    constants = [facts.tensor(ref) for ref in operation.refs if facts.fact(ref) is None]
    beside = [_counted_by_loops(facts, numbers, given) for numbers in constants]
    if any(fact.of_nodes for fact in given) and NO_NODES in beside:
        facts.beyond.append("edges between certain nodes")
    loops = iter(beside)
    args, kwargs = tree_map(
        lambda argument: _counting(facts, argument, loops) if isinstance(argument, Ref) else argument,
        (operation.args, operation.kwargs),
    )
    shapes = [one.shape for one in moved]
    for number, origin, counting in zip(
        operation.outputs, moved, facts.counting.moved(operation, args, kwargs, shapes), strict=True
    ):
        _put(facts, number, origin, counting)


def _some_are_gone(given: list[Tensor], moved: list[Tensor]) -> bool:
    """Whether an edge is nowhere any more."""
    before, after = (columns_of(torch.cat([distinct(one).reshape(-1) for one in many])) for many in (given, moved))
    kept = torch.zeros(int(torch.cat([before, after]).max()) + 2 if len(after) else 1, dtype=torch.bool)
    kept[after] = True  # the last place is for what is no edge
    return not bool(kept[before].all())


def _counted_by_loops(facts: Facts, numbers: Tensor, given: list[Index]) -> int:
    """What constants count that are put beside an index: all nodes, where they are both ends of a self-loop at each.

    Between nodes of two types there are none: the third node of one is not the third of the other.
    """
    counted = facts.counting.of(torch.cat([distinct(fact.counting).reshape(-1) for fact in given]))
    size = numbers.shape[-1] if numbers.dim() else 0
    if counted is None or len(counted) != 1 or not bool((numbers == torch.arange(size)).all()):
        return NO_NODES
    ((node_type, first),) = counted
    both_ends = len(facts.nodes) == 1 or numbers.dim() == 2
    is_all = both_ends and not first and size == len(facts.nodes[node_type])
    return facts.counting.number(counted) if is_all else NO_NODES


def overlay(facts: Facts, operation: Operation) -> None:
    """A part of an index that is written over, such as senders that are counted from another number on."""
    whole, part = (_origin(facts, argument) for argument in operation.args)
    origin, places = whole.clone(), operation.kwargs["places"]
    origin.view(-1)[places] = part
    before, after = (_counting(facts, argument, repeat(NO_NODES)) for argument in operation.args)
    if origin.numel():
        counting = before.clone(memory_format=torch.contiguous_format)
        counting.view(-1)[places] = after
    else:
        counting = facts.counting.union(torch.cat([before.reshape(-1), after.reshape(-1)])).expand(before.shape)
    _put(facts, operation.outputs[0], origin, counting)


def compare(facts: Facts, operation: Operation) -> None:
    """Truth values and numbers that follow from numbers of nodes or labels, entry by entry."""
    output = facts.output(operation)
    if _count_on(facts, operation, output):
        return
    known = [fact for argument in operation.args if isinstance(fact := facts.fact(argument), Index)]
    found = next((fact for fact in known if fact.origin.shape == output.shape), None)
    if found is None:
        raise Untraceable(f"the operation {operation.name} on the edges")
    # Whether two ends are the same node does not depend on how nodes are numbered; all else does.
    same = len(known) == 2 and facts.counting.of(torch.cat([one.counting.reshape(-1) for one in known]))
    if any(fact.of_nodes for fact in known) and not (operation.name in ("eq", "ne") and same and len(same) == 1):
        facts.beyond.append("the numbers of nodes")
    counting = no_count(output.shape) if output.dtype == torch.bool else found.counting
    _put(facts, operation.outputs[0], found.origin, counting)


def _count_on(facts: Facts, operation: Operation, output: Tensor) -> bool:
    """Numbers of nodes that are counted from another number on: where rows of this type begin, which rows show."""
    index, by = operation.args[0], operation.args[1] if len(operation.args) > 1 else None
    if isinstance(facts.fact(by), Index) and operation.name == "add":
        index, by = by, index
    fact = facts.fact(index)
    if operation.name != "add" or operation.kwargs or not isinstance(fact, Index) or facts.fact(by) is not None:
        return False
    shift = facts.tensor(by) if isinstance(by, Ref) else torch.tensor(by)
    if output.is_floating_point() or output.dtype == torch.bool or output.shape != fact.origin.shape:
        return False
    counting = facts.counting.counted_on(fact.counting, shift)
    if counting is None:
        return False
    facts.place(())
    if isinstance(by, Ref):
        facts.place((), by.number)
    _put(facts, operation.outputs[0], fact.origin, counting)
    return True


def mark_labels(facts: Facts, operation: Operation) -> None:
    """A row of 0 and 1 for each label."""
    into, axis, index, value = operation.args
    fact = facts.fact(index)
    if isinstance(fact, Index) and fact.of_nodes:
        facts.beyond.append("the numbers of nodes")
    if (
        axis == 0
        or isinstance(value, Ref)
        or facts.fact(into) is not None
        or not isinstance(fact, Index)
        or fact.origin.shape[1:] != (1,)
    ):
        raise Untraceable("the operation scatter on the edges")
    shape = facts.output(operation).shape
    _put(facts, operation.outputs[0], fact.origin.expand(shape), no_count(shape))


def choose(facts: Facts, operation: Operation) -> None:
    """Entries of an index by a constant or another index; or rows of a constant by an index."""
    fact = facts.fact(operation.args[0])
    chosen = [facts.fact(ref) for ref in refs(operation.args[1:])]
    if not isinstance(fact, Index):
        _look_up(facts, operation, [one for one in chosen if isinstance(one, Index)])
        return
    if not all(isinstance(one, Index) for one in chosen):
        facts.beyond.append("some edges chosen by where they stand")
    rest = tree_map(lambda one: facts.tensor(one) if isinstance(one, Ref) else one, operation.args[1:])
    origin = operation.function(fact.origin, *rest, **operation.kwargs)
    # On another graph others may be chosen.
    counting = facts.counting.union(fact.counting, 1 if _are_columns_chosen(operation, fact.origin) else None)
    _put(facts, operation.outputs[0], origin, counting.expand(at_least_one(origin.shape)))


def _are_columns_chosen(operation: Operation, index: Tensor) -> bool:
    """Whether an operation chooses some columns of an edge index."""
    if index.dim() != 2 or operation.name not in ("index", "index_select"):
        return False
    given = operation.args[1]
    return given % 2 == 1 if operation.name == "index_select" else len(given) == 2 and given[0] is None


def _look_up(facts: Facts, operation: Operation, chosen: list[Index]) -> None:
    """Rows of a constant by an index, such as the embedding of each edge's type."""
    number, output = operation.outputs[0], facts.output(operation)
    if any(one.of_nodes for one in chosen):
        facts.beyond.append("a table with a row for each node")
    if (
        len(chosen) != 1
        or chosen[0].origin.dim() != 1
        or operation.name not in ("index", "index_select", "embedding")
    ):  # fmt: skip
        raise Untraceable(f"the operation {operation.name} on the edges")
    if not output.is_floating_point():
        if output.dim() != 1:
            raise Untraceable("a table of whole numbers looked up by edges")
        facts.known[number] = Index(chosen[0].origin, no_count(output.shape))
        return
    axis = operation.args[1] if operation.name == "index_select" else 0
    value = Value(facts.edge_space(chosen[0].columns.numpy()), row_width(output, axis), flat_rows(output, axis))
    facts.known[number] = Rows(value, axis, tuple(output.shape))


def _origin(facts: Facts, argument: Any) -> Any:
    if not isinstance(argument, Ref):
        return argument
    fact = facts.fact(argument)
    return fact.origin if isinstance(fact, Index) else torch.full(facts.tensor(argument).shape, -1)


def _counting(facts: Facts, argument: Ref, loops: Iterator[int]) -> Tensor:
    """What the numbers of an argument count; ``loops`` says it of constants, in their order."""
    fact = facts.fact(argument)
    if isinstance(fact, Index):
        return fact.counting
    return torch.tensor(next(loops)).expand(at_least_one(facts.tensor(argument).shape))


def _put(facts: Facts, number: int, origin: Tensor, counting: Tensor) -> None:
    """An output that is an index again, or whole numbers as features: the type of an edge, or 0 and 1 for each type."""
    tensor, index = facts.trace.values[number], Index(origin, compact(counting))
    if not tensor.is_floating_point():
        facts.known[number] = index
        return
    columns = columns_of(origin)
    rows = columns.reshape(len(columns), -1) if columns.dim() else columns.reshape(1, 1)
    if not bool((rows == rows[:, :1]).all()):
        raise Untraceable("numbers of nodes used as features")
    if index.of_nodes:
        facts.beyond.append("the numbers of nodes")
    value = Value(facts.edge_space(rows[:, 0].numpy()), row_width(tensor, 0), flat_rows(tensor, 0))
    facts.known[number] = Rows(value, 0, tuple(tensor.shape))
