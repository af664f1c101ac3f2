"""Products with a matrix, and rows added up or compared, in vector instructions.

Written in LLVM's own language, because numba cannot be told that two arrays do not overlap: it would load and store
every sum for each row that is added, and test for an overlap each time. Here sums stay in registers.

A row is read and written in whole vectors. Where its end is not that of a vector, what stands behind it is read too,
and written as it was: there must be room for a vector behind the last row of an array (`layout.room_for`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic

from butfor.oracle.program.kernels.emitting import (
    LANES,
    NOTHING,
    each_vector,
    everywhere,
    first_lanes,
    for_all_columns,
    loaded,
    multiples,
    numbers,
    store,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "add_multiples",
    "add_products",
    "add_products_of_relus",
    "add_row",
    "add_rows",
    "copy_row",
    "fill_row",
    "largest_of_rows",
    "multiply_row",
    "relu_row",
    "rows_differ",
    "smallest_of_rows",
]

# Which numbers of a vector pass a test.
TESTS = ir.VectorType(ir.IntType(1), LANES)


def _plus(builder: Any, total: Any, one: Any) -> Any:
    return builder.fadd(total, one, flags=("contract",))


def _larger(builder: Any, total: Any, one: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", one, total), one, total)


def _smaller(builder: Any, total: Any, one: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", one, total), one, total)


def _relu(builder: Any, x: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, NOTHING), NOTHING, x)


def _times(builder: Any, x: Any, y: Any) -> Any:
    return builder.fmul(x, y)


def _signature(result: Any, *kinds: Any) -> Any:
    """What a function takes and gives: whole numbers of any kind are taken."""
    return result(*(types.int64 if isinstance(kind, types.Integer) else kind for kind in kinds))


@intrinsic  # type: ignore[untyped-decorator]
def add_multiples(
    _: Any, out: Any, o: Any, start: Any, s: Any, matrix: Any, m: Any, factors: Any, rows: Any, count: Any, width: Any
) -> tuple[Any, Any]:
    """A row and, for all j below ``count``, ``factors[j]`` times row ``rows[j]`` of a matrix, added up.

    The row is ``width`` numbers of ``start`` from ``s`` on, the matrix begins at ``m``, and the sums go to ``out`` from
    ``o`` on.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out, begin, matrix, factors, rows = numbers(context, builder, signature, args)
        count, width = args[8:]

        def terms(j: Any, at: Any, vectors: int) -> list[list[Any]]:
            row = builder.gep(matrix, [builder.add(at, builder.mul(builder.load(builder.gep(rows, [j])), width))])
            return [multiples(builder, loaded(builder, row, vectors), builder.load(builder.gep(factors, [j])))]

        for_all_columns(builder, [(out, begin)], width, count, terms, _plus)
        return context.get_dummy_value()

    return _signature(types.void, out, o, start, s, matrix, m, factors, rows, count, width), generate


def _products(of_relu: bool) -> Any:
    """A function that multiplies two rows with a matrix, as they are or where they are not negative."""

    def products(
        _: Any, out: Any, o: Any, p: Any, start: Any, s: Any, t: Any, x: Any, i: Any, j: Any, matrix: Any, m: Any,
        wide: Any, width: Any,
    ) -> tuple[Any, Any]:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            wide, width = args[11:]
            other = [*args]
            other[1], other[4], other[7] = args[2], args[5], args[8]
            of_two = [numbers(context, builder, signature, which) for which in (args, other)]
            matrix = of_two[0][3]

            def factor(x: Any) -> Any:
                number = builder.load(x)
                return _larger(builder, number, ir.Constant(ir.DoubleType(), 0.0)) if of_relu else number

            def terms(k: Any, at: Any, vectors: int) -> list[list[Any]]:
                row = loaded(builder, builder.gep(matrix, [builder.add(at, builder.mul(k, width))]), vectors)
                return [multiples(builder, row, factor(builder.gep(x, [k]))) for _, _, x, _ in of_two]

            for_all_columns(builder, [(out, begin) for out, begin, _, _ in of_two], width, wide, terms, _plus)
            return context.get_dummy_value()

        return _signature(types.void, out, o, p, start, s, t, x, i, j, matrix, m, wide, width), generate

    products.__doc__ = f"""Two rows, and to each is added {"the ReLU of " if of_relu else ""}a row times a matrix.

    Each row is ``width`` numbers of ``start``, from ``s`` and from ``t`` on; what is multiplied are ``wide`` numbers of
    ``x`` from ``i`` and from ``j`` on; the matrix begins at ``m``, and the sums go to ``out`` from ``o`` and from ``p``
    on. Two rows take as long as one, may be the same, and what becomes of one does not depend on the other.
    """
    return intrinsic(products)


def _of_rows(join: Callable[[Any, Any, Any], Any], text: str) -> Any:
    """A function that joins rows of an array with another row, number by number."""

    def of_rows(
        _: Any, out: Any, o: Any, start: Any, s: Any, values: Any, places: Any, count: Any, width: Any
    ) -> tuple[Any, Any]:
        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            out, begin, values, places = numbers(context, builder, signature, args)
            count, width = args[6:]

            def terms(j: Any, at: Any, vectors: int) -> list[list[Any]]:
                place = builder.add(at, builder.load(builder.gep(places, [j])))
                return [loaded(builder, builder.gep(values, [place]), vectors)]

            for_all_columns(builder, [(out, begin)], width, count, terms, join, parallel=join is _plus)
            return context.get_dummy_value()

        return _signature(types.void, out, o, start, s, values, places, count, width), generate

    of_rows.__doc__ = f"""{text} of a row and others, column by column.

    The row is ``width`` numbers of ``start`` from ``s`` on; the others are those of ``values`` from ``places[j]`` on,
    for all j below ``count``; what comes out goes to ``out`` from ``o`` on.
    """
    return intrinsic(of_rows)


def _row_by_row(compute: Callable[..., Any], arity: int) -> Any:
    """A function that computes a row of numbers of one row or two, column by column."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out, *inputs = numbers(context, builder, signature, args)

        def body(at: Any, left: Any) -> None:
            vectors = [loaded(builder, builder.gep(one, [at]), 1)[0] for one in inputs]
            store(builder, builder.gep(out, [at]), [compute(builder, *vectors)], left)

        each_vector(builder, args[-1], body)
        return context.get_dummy_value()

    def of_one(_: Any, out: Any, o: Any, x: Any, i: Any, width: Any) -> tuple[Any, Any]:
        return _signature(types.void, out, o, x, i, width), generate

    def of_two(_: Any, out: Any, o: Any, x: Any, i: Any, y: Any, j: Any, width: Any) -> tuple[Any, Any]:
        return _signature(types.void, out, o, x, i, y, j, width), generate

    return intrinsic(of_one if arity == 1 else of_two)


@intrinsic  # type: ignore[untyped-decorator]
def fill_row(_: Any, out: Any, o: Any, number: Any, width: Any) -> tuple[Any, Any]:
    """Let a row be the same number everywhere."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        (out,), row = numbers(context, builder, signature, args), [everywhere(builder, args[2])]
        each_vector(builder, args[-1], lambda at, left: store(builder, builder.gep(out, [at]), row, left))
        return context.get_dummy_value()

    return _signature(types.void, out, o, number, width), generate


@intrinsic  # type: ignore[untyped-decorator]
def rows_differ(_: Any, x: Any, i: Any, y: Any, j: Any, width: Any) -> tuple[Any, Any]:
    """Whether ``width`` numbers of ``x`` from ``i`` on differ from those of ``y`` from ``j`` on, or are no numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        rows = numbers(context, builder, signature, args)
        found = alloca_once(builder, TESTS)

        def body(at: Any, left: Any) -> None:
            one, other = (loaded(builder, builder.gep(row, [at]), 1)[0] for row in rows)
            differ = builder.and_(builder.fcmp_unordered("!=", one, other), first_lanes(builder, left))
            builder.store(builder.or_(builder.load(found), differ), found)

        builder.store(ir.Constant(TESTS, [0] * LANES), found)
        each_vector(builder, args[-1], body)
        bits = builder.bitcast(builder.load(found), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return _signature(types.boolean, x, i, y, j, width), generate


add_products, add_products_of_relus = _products(of_relu=False), _products(of_relu=True)
add_rows = _of_rows(_plus, "The sum")
largest_of_rows = _of_rows(_larger, "The largest")
smallest_of_rows = _of_rows(_smaller, "The smallest")
# Let a row be what another is; the same, and 0 where that is negative; the sum of two; their product, column by column.
copy_row, relu_row = _row_by_row(lambda _, x: x, 1), _row_by_row(_relu, 1)
add_row, multiply_row = _row_by_row(_plus, 2), _row_by_row(_times, 2)
