"""Walk the operations of a trace, and say of each what is done to rows or to indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from butfor.oracle.program.lowering import arithmetic, choices, indices, moves, reductions
from butfor.oracle.program.lowering.counting import distinct
from butfor.oracle.program.lowering.facts import Facts, Index, Lost, Rows
from butfor.oracle.program.lowering.operations import (
    BINARY,
    CHOICES,
    FOLDS,
    FRESH,
    MOVES,
    PRODUCTS,
    QUESTIONS,
    REDUCTIONS,
    SAME,
    UNARY,
)
from butfor.oracle.program.trace import Untraceable

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.oracle.program.trace import Operation

    Follow = Callable[[Facts, Operation], None]

__all__ = ["Lowering"]


def _fresh(facts: Facts, operation: Operation) -> None:
    """What comes out is a constant, unless it is filled with what a row has."""
    if any(facts.fact(ref) is not None for ref in operation.refs[1:]):
        raise Untraceable(f"the operation {operation.name}")


# What is done where an argument has rows, by the name of the operation.
ON_ROWS: dict[str, Follow] = {
    **dict.fromkeys(SAME, moves.same),
    **dict.fromkeys(MOVES, moves.move),
    **dict.fromkeys(CHOICES, choices.gather),
    "index_put": choices.index_put,
    "copy": choices.copy,
    "overlay": choices.overlay,
    **dict.fromkeys(UNARY | BINARY | {"where", "masked_fill", "rsub"}, arithmetic.apply),
    **dict.fromkeys(PRODUCTS, arithmetic.multiply),
    **dict.fromkeys(FOLDS, reductions.fold),
    **dict.fromkeys(("max", "min"), reductions.extreme),
    **dict.fromkeys(REDUCTIONS, reductions.reduce),
    "edge_softmax": reductions.softmax,
    **dict.fromkeys(FRESH, _fresh),
}

# What is done where none has, but one is an index.
ON_INDICES: dict[str, Follow] = {
    **dict.fromkeys(SAME | MOVES, indices.move),
    **dict.fromkeys(CHOICES, indices.choose),
    "copy": choices.copy,
    "overlay": indices.overlay,
    **dict.fromkeys(UNARY | BINARY, indices.compare),
    "scatter": indices.mark_labels,
    "bincount": reductions.count,
    **dict.fromkeys(QUESTIONS, indices.ask),
    **dict.fromkeys(FRESH, _fresh),
}


class Lowering(Facts):
    """The facts of a trace, told of its inputs (`add_rows` and the like); `run` finds all others."""

    def run(self) -> Rows:
        """The output, with all steps that lead to it.

        Raises:
            Untraceable: saying what it was.
        """
        if any(value.is_floating_point() and torch.finfo(value.dtype).bits < 32 for value in self.trace.values):
            # Neither near ties nor bounds leave that much room for rounding.
            raise Untraceable("numbers in half precision")
        for operation in self.trace.operations:
            self._follow(operation)
        self.read(self.trace.output)
        found = self.known.get(self.trace.output)
        if not isinstance(found, Rows):
            raise Untraceable("an output that does not follow from the graph row by row")
        return found

    def _follow(self, operation: Operation) -> None:
        """Find out what the outputs of an operation are."""
        self.now = operation.outputs
        for ref in operation.refs[operation.name == "copy" :]:  # a copy only writes into the first
            self.read(ref.number)
        lost = [fact for ref in operation.refs if isinstance(fact := self.known.get(ref.number), Lost)]
        if lost and operation.name == "overlay":
            self.known[operation.outputs[0]] = lost[0]
            return
        if operation.name == "_local_scalar_dense" and any(fact.is_size for fact in lost):
            return
        facts = [self.fact(ref) for ref in operation.refs]
        counted = operation.name in REDUCTIONS and len(facts) == 3 and any(fact is not None for fact in facts)
        if any(isinstance(fact, Rows) for fact in facts) or counted:
            self._follow_rows(operation)
        elif any(fact is not None for fact in facts):
            if operation.name not in ON_INDICES:
                raise Untraceable(f"the operation {operation.name} on the edges")
            ON_INDICES[operation.name](self, operation)
        for number in operation.outputs:
            self._note(number)

    def _note(self, number: int) -> None:
        """Note what a row is made of, or an index, in terms that do not depend on sizes; columns are noted by moves."""
        fact = self.known.get(number)
        if isinstance(fact, Rows) and 0 not in fact.shape:
            self.trace.made[number] = (tuple(fact.inner), self.trace.made.get(number))
        elif isinstance(fact, Index) and fact.origin.numel():
            self.trace.made[number] = self.relations.made_of(distinct(fact.origin).numpy())

    def _follow_rows(self, operation: Operation) -> None:
        name = operation.name
        if name in ON_ROWS:
            ON_ROWS[name](self, operation)
            return
        facts = [fact for ref in operation.refs if (fact := self.fact(ref)) is not None]
        if all(isinstance(fact, Rows) and fact.value.fixed and fact.space.columns is None for fact in facts):
            # Whatever it is, no edit changes what comes out.
            self.beyond.append(f"the operation {name}")
        elif name in QUESTIONS:
            raise Untraceable("a decision that depends on the values of nodes")
        else:
            raise Untraceable(f"the operation {name}")
