"""Multiples of rows of a matrix added up, in vector instructions.

Written in LLVM's own language, because numba cannot be told that two arrays do not overlap: it would load and store
every sum for each row of the matrix, and test for an overlap each time. Here sums stay in registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["add_multiples"]

DOUBLE, INT, INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)

# How many columns are added up at once: vectors of so many numbers, and how many of these. Enough sums are under way
# that none waits for the one before; what is left of a row goes through smaller ones.
BLOCKS = ((8, 4), (8, 1), (4, 1), (1, 1))


@intrinsic  # type: ignore[untyped-decorator]
def add_multiples(
    _: Any, out: Any, o: Any, matrix: Any, m: Any, factors: Any, rows: Any, count: Any, width: Any
) -> tuple[Any, Any]:
    """Add ``factors[j]`` times row ``rows[j]`` of a matrix to a row, for all j below ``count``.

    The row is ``width`` numbers of ``out`` from ``o`` on; the matrix begins at ``m``.
    """
    whole = [types.int64 if isinstance(kind, types.Integer) else kind for kind in (o, m, count, width)]
    return types.void(out, whole[0], matrix, whole[1], factors, rows, *whole[2:]), _generate


def _generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
    def numbers(k: int) -> Any:
        return context.make_array(signature.args[k])(context, builder, args[k]).data

    sums, matrix = builder.gep(numbers(0), [args[1]]), builder.gep(numbers(2), [args[3]])
    of_rows, width, begin = (numbers(4), numbers(5), args[6]), args[7], ir.Constant(INT, 0)
    for lanes, vectors in BLOCKS:
        entry, head, body, end = builder.block, *(builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        at = builder.phi(INT)
        at.add_incoming(begin, entry)
        after = builder.add(at, ir.Constant(INT, lanes * vectors))
        builder.cbranch(builder.icmp_signed("<=", after, width), body, end)
        builder.position_at_end(body)
        mine = builder.gep(sums, [at])
        before = _loaded(builder, mine, lanes, vectors)
        for k, total in enumerate(_added_up(builder, before, builder.gep(matrix, [at]), width, of_rows, lanes)):
            place = builder.gep(mine, [ir.Constant(INT, k * lanes)])
            builder.store(total, builder.bitcast(place, total.type.as_pointer()), align=8)
        at.add_incoming(after, builder.block)
        builder.branch(head)
        builder.position_at_end(end)
        begin = at
    return context.get_dummy_value()


def _added_up(
    builder: Any, sums: list[Any], matrix: Any, width: Any, of_rows: tuple[Any, Any, Any], lanes: int
) -> list[Any]:
    """The sums of one block of columns: the loop over the rows, with their factors, their places and their number."""
    factors, rows, count = of_rows
    entry, head, body, end = builder.block, *(builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    j, totals = builder.phi(INT), [builder.phi(one.type) for one in sums]
    for total, one in zip([j, *totals], [ir.Constant(INT, 0), *sums], strict=True):
        total.add_incoming(one, entry)
    builder.cbranch(builder.icmp_signed("<", j, count), body, end)
    builder.position_at_end(body)
    row = builder.gep(matrix, [builder.mul(builder.load(builder.gep(rows, [j])), width)])
    brought = _loaded(builder, row, lanes, len(sums))
    factor = _everywhere(builder, builder.load(builder.gep(factors, [j])), lanes)
    for total, one in zip(totals, brought, strict=True):
        product = builder.fmul(one, factor, flags=("contract",))
        total.add_incoming(builder.fadd(total, product, flags=("contract",)), body)
    j.add_incoming(builder.add(j, ir.Constant(INT, 1)), body)
    builder.branch(head)
    builder.position_at_end(end)
    return totals


def _loaded(builder: Any, numbers: Any, lanes: int, vectors: int) -> list[Any]:
    kind = ir.VectorType(DOUBLE, lanes).as_pointer()
    places = [builder.gep(numbers, [ir.Constant(INT, k * lanes)]) for k in range(vectors)]
    return [builder.load(builder.bitcast(place, kind), align=8) for place in places]


def _everywhere(builder: Any, number: Any, lanes: int) -> Any:
    """A vector of the same number."""
    nothing = ir.Constant(ir.VectorType(DOUBLE, lanes), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INDEX, lanes), [0] * lanes))
