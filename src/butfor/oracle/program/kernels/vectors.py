"""Products with a matrix, and rows added up or compared, in vector instructions.

Written in LLVM's own language, because numba cannot be told that two arrays do not overlap: it would load and store
every sum for each row that is added, and test for an overlap each time. Here sums stay in registers.

A row is read and written in whole vectors. Where its end is not that of a vector, what stands behind it is read too, and
written as it was: there must be room for a vector behind the last row of an array (`layout.room_for`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "LANES",
    "add_multiples",
    "add_products",
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

DOUBLE, INT, INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
INT64 = types.int64

# How many numbers a vector has, how many vectors of a row are added up at once while that many are left, and how many
# sums are under way at any time: enough that none waits for the one before.
LANES, VECTORS, SUMS = 8, 4, 8
VECTOR, TESTS = ir.VectorType(DOUBLE, LANES), ir.VectorType(ir.IntType(1), LANES)
NOTHING = ir.Constant(VECTOR, [0.0] * LANES)


@intrinsic  # type: ignore[untyped-decorator]
def add_multiples(
    _: Any, out: Any, o: Any, start: Any, s: Any, matrix: Any, m: Any, factors: Any, rows: Any, count: Any, width: Any
) -> tuple[Any, Any]:
    """A row and, for all j below ``count``, ``factors[j]`` times row ``rows[j]`` of a matrix, added up.

    The row is ``width`` numbers of ``start`` from ``s`` on, the matrix begins at ``m``, and the sums go to ``out`` from
    ``o`` on.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out, begin, matrix, factors, rows = _numbers(context, builder, signature, args)
        count, width = args[8:]

        def terms(j: Any, at: Any, vectors: int) -> list[list[Any]]:
            row = builder.gep(matrix, [builder.add(at, builder.mul(builder.load(builder.gep(rows, [j])), width))])
            return [_multiples(builder, _loaded(builder, row, vectors), builder.gep(factors, [j]))]

        _for_all_columns(builder, [(out, begin)], width, count, terms, _plus)
        return context.get_dummy_value()

    return types.void(out, INT64, start, INT64, matrix, INT64, factors, rows, INT64, INT64), generate


@intrinsic  # type: ignore[untyped-decorator]
def add_products(
    _: Any, out: Any, o: Any, p: Any, start: Any, s: Any, t: Any, x: Any, i: Any, j: Any, matrix: Any, m: Any,
    wide: Any, width: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Two rows and, for each, the product of a row with a matrix, added up.

    Each row is ``width`` numbers of ``start``, from ``s`` and from ``t`` on; what is multiplied are ``wide`` numbers of
    ``x`` from ``i`` and from ``j`` on; the matrix begins at ``m``, and the sums go to ``out`` from ``o`` and from ``p``
    on. Two rows take as long as one, may be the same, and what becomes of one does not depend on the other.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        wide, width = args[11:]
        other = [*args]
        other[1], other[4], other[7] = args[2], args[5], args[8]
        of_two = [_numbers(context, builder, signature, which) for which in (args, other)]
        matrix = of_two[0][3]

        def terms(k: Any, at: Any, vectors: int) -> list[list[Any]]:
            row = _loaded(builder, builder.gep(matrix, [builder.add(at, builder.mul(k, width))]), vectors)
            return [_multiples(builder, row, builder.gep(x, [k])) for _, _, x, _ in of_two]

        _for_all_columns(builder, [(out, begin) for out, begin, _, _ in of_two], width, wide, terms, _plus)
        return context.get_dummy_value()

    two = INT64, INT64
    return types.void(out, *two, start, *two, x, *two, matrix, INT64, *two), generate


def _of_rows(join: Callable[[Any, Any, Any], Any], text: str) -> Any:
    """A function that joins rows of an array with another row, number by number."""

    def of_rows(
        _: Any, out: Any, o: Any, start: Any, s: Any, values: Any, places: Any, count: Any, width: Any
    ) -> tuple[Any, Any]:
        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            out, begin, values, places = _numbers(context, builder, signature, args)
            count, width = args[6:]

            def terms(j: Any, at: Any, vectors: int) -> list[list[Any]]:
                place = builder.add(at, builder.load(builder.gep(places, [j])))
                return [_loaded(builder, builder.gep(values, [place]), vectors)]

            _for_all_columns(builder, [(out, begin)], width, count, terms, join, parallel=False)
            return context.get_dummy_value()

        return types.void(out, INT64, start, INT64, values, places, INT64, INT64), generate

    of_rows.__doc__ = f"""{text} of a row and others, column by column.

    The row is ``width`` numbers of ``start`` from ``s`` on; the others are those of ``values`` from ``places[j]`` on,
    for all j below ``count``; what comes out goes to ``out`` from ``o`` on.
    """
    return intrinsic(of_rows)


def _row_by_row(compute: Callable[..., Any], arity: int, text: str) -> Any:
    """A function that computes a row of numbers of one row or two, column by column."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out, *inputs = _numbers(context, builder, signature, args)

        def body(at: Any, left: Any) -> None:
            vectors = [_loaded(builder, builder.gep(one, [at]), 1)[0] for one in inputs]
            _store(builder, builder.gep(out, [at]), [compute(builder, *vectors)], left)

        _each_vector(builder, args[-1], body)
        return context.get_dummy_value()

    def of_one(_: Any, out: Any, o: Any, x: Any, i: Any, width: Any) -> tuple[Any, Any]:
        return types.void(out, INT64, x, INT64, INT64), generate

    def of_two(_: Any, out: Any, o: Any, x: Any, i: Any, y: Any, j: Any, width: Any) -> tuple[Any, Any]:
        return types.void(out, INT64, x, INT64, y, INT64, INT64), generate

    function = of_one if arity == 1 else of_two
    function.__doc__ = text
    return intrinsic(function)


@intrinsic  # type: ignore[untyped-decorator]
def fill_row(_: Any, out: Any, o: Any, number: Any, width: Any) -> tuple[Any, Any]:
    """Let a row be the same number everywhere."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        (out,), row = _numbers(context, builder, signature, args), [_everywhere(builder, args[2])]
        _each_vector(builder, args[-1], lambda at, left: _store(builder, builder.gep(out, [at]), row, left))
        return context.get_dummy_value()

    return types.void(out, INT64, types.float64, INT64), generate


@intrinsic  # type: ignore[untyped-decorator]
def rows_differ(_: Any, x: Any, i: Any, y: Any, j: Any, width: Any) -> tuple[Any, Any]:
    """Whether ``width`` numbers of ``x`` from ``i`` on differ from those of ``y`` from ``j`` on, or are no numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        rows = _numbers(context, builder, signature, args)
        found = alloca_once(builder, TESTS)

        def body(at: Any, left: Any) -> None:
            one, other = (_loaded(builder, builder.gep(row, [at]), 1)[0] for row in rows)
            differ = builder.and_(builder.fcmp_unordered("!=", one, other), _first_lanes(builder, left))
            builder.store(builder.or_(builder.load(found), differ), found)

        builder.store(ir.Constant(TESTS, [0] * LANES), found)
        _each_vector(builder, args[-1], body)
        bits = builder.bitcast(builder.load(found), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(x, INT64, y, INT64, INT64), generate


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


add_rows = _of_rows(_plus, "The sum")
largest_of_rows = _of_rows(_larger, "The largest")
smallest_of_rows = _of_rows(_smaller, "The smallest")
copy_row = _row_by_row(lambda _, x: x, 1, "Let a row be what another is.")
relu_row = _row_by_row(_relu, 1, "Let a row be what another is, and 0 where that is negative.")
add_row = _row_by_row(_plus, 2, "Let a row be the sum of two.")
multiply_row = _row_by_row(_times, 2, "Let a row be the product of two, column by column.")


def _numbers(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> list[Any]:
    """Where each array is read or written: from its beginning, or from the number on that is given behind it."""
    kinds, places = signature.args, []
    for k, kind in enumerate(kinds):
        if isinstance(kind, types.Array):
            data = context.make_array(kind)(context, builder, args[k]).data
            alone = k + 1 == len(kinds) or isinstance(kinds[k + 1], types.Array) or kind.dtype == INT64
            places.append(data if alone else builder.gep(data, [args[k + 1]]))
    return places


def _each_vector(builder: Any, width: Any, body: Callable[[Any, Any], None]) -> None:
    """Go through a row: where each vector begins, and how many numbers of the row are left from there on."""
    entry, head, inside, end = builder.block, *(builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    at = builder.phi(INT)
    at.add_incoming(_whole(0), entry)
    builder.cbranch(builder.icmp_signed("<", at, width), inside, end)
    builder.position_at_end(inside)
    body(at, builder.sub(width, at))
    at.add_incoming(builder.add(at, _whole(LANES)), builder.block)
    builder.branch(head)
    builder.position_at_end(end)


def _for_all_columns(
    builder: Any,
    rows: list[tuple[Any, Any]],
    width: Any,
    count: Any,
    terms: Callable[[Any, Any, int], list[list[Any]]],
    join: Callable[[Any, Any, Any], Any],
    parallel: bool = True,
) -> None:
    """Join ``count`` terms with rows, some columns at a time: first several vectors, then one, of which a part counts.

    Each row is where it goes, and where it begins. ``parallel`` says whether several sums of a column are made, of
    every second term or fourth, and added up at the end.
    """
    begin: Any = _whole(0)
    for vectors in (VECTORS, 1):
        apart = SUMS // (vectors * len(rows)) if parallel else 1
        enough = _whole(vectors * LANES if vectors > 1 else 1)
        entry, head, body, end = builder.block, *(builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        at = builder.phi(INT)
        at.add_incoming(begin, entry)
        builder.cbranch(builder.icmp_signed("<=", builder.add(at, enough), width), body, end)
        builder.position_at_end(body)
        sums = [_loaded(builder, builder.gep(start, [at]), vectors) for _, start in rows]

        def brought(j: Any, at: Any = at, vectors: int = vectors) -> list[list[Any]]:
            return terms(j, at, vectors)

        left = None if vectors > 1 else builder.sub(width, at)
        for (out, _), totals in zip(rows, _joined(builder, sums, apart, count, brought, join), strict=True):
            _store(builder, builder.gep(out, [at]), totals, left)
        at.add_incoming(builder.add(at, _whole(vectors * LANES)), builder.block)
        builder.branch(head)
        builder.position_at_end(end)
        begin = at


def _joined(
    builder: Any,
    sums: list[list[Any]],
    apart: int,
    count: Any,
    terms: Callable[[Any], list[list[Any]]],
    join: Callable[[Any, Any, Any], Any],
) -> list[list[Any]]:
    """The sums of some columns of each row: ``apart`` terms at a time as long as there are so many, then one by one."""
    parts = [sums, *([[NOTHING] * len(row) for row in sums] for _ in range(apart - 1))]
    j: Any = _whole(0)
    for step in (apart, 1) if apart > 1 else (1,):
        entry, head, body, end = builder.block, *(builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        at, before = builder.phi(INT), j
        at.add_incoming(before, entry)
        now = [[[builder.phi(VECTOR) for _ in row] for row in part] for part in parts[:step]]
        for phi, one in zip(_flat(now), _flat(parts[:step]), strict=True):
            phi.add_incoming(one, entry)
        j = builder.add(at, _whole(step))
        builder.cbranch(builder.icmp_signed("<=", j, count), body, end)
        builder.position_at_end(body)
        for k, part in enumerate(now):
            for row, brought in zip(part, terms(builder.add(at, _whole(k))), strict=True):
                for total, one in zip(row, brought, strict=True):
                    total.add_incoming(join(builder, total, one), body)
        at.add_incoming(j, body)
        builder.branch(head)
        builder.position_at_end(end)
        parts, j = [*now, *parts[step:]], at
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [[list(map(join, [builder] * len(a), a, b)) for a, b in zip(x, y, strict=True)] for x, y in pairs]
    return parts[0]


def _flat(parts: list[list[list[Any]]]) -> list[Any]:
    return [vector for part in parts for row in part for vector in row]


def _multiples(builder: Any, row: list[Any], factor: Any) -> list[Any]:
    """A row of vectors times a number."""
    everywhere = _everywhere(builder, builder.load(factor))
    return [builder.fmul(one, everywhere, flags=("contract",)) for one in row]


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector of the same number."""
    nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INDEX, LANES), [0] * LANES))


def _first_lanes(builder: Any, count: Any) -> Any:
    """Which numbers of a vector are among the first so many."""
    lanes = ir.Constant(ir.VectorType(INT, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lanes, _everywhere(builder, count))


def _loaded(builder: Any, numbers: Any, vectors: int) -> list[Any]:
    places = [builder.gep(numbers, [_whole(k * LANES)]) for k in range(vectors)]
    return [builder.load(builder.bitcast(place, VECTOR.as_pointer()), align=8) for place in places]


def _store(builder: Any, numbers: Any, row: list[Any], left: Any) -> None:
    """Write vectors; of a single one only as many numbers as are left of the row, where these are fewer."""
    for k, vector in enumerate(row):
        place = builder.bitcast(builder.gep(numbers, [_whole(k * LANES)]), VECTOR.as_pointer())
        if left is not None:
            vector = builder.select(_first_lanes(builder, left), vector, builder.load(place, align=8))
        builder.store(vector, place, align=8)


def _whole(number: int) -> Any:
    return ir.Constant(INT, number)
