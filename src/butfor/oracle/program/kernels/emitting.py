"""Parts of which functions of rows are built, in LLVM's own language: loops over vectors, and what is done in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "LANES",
    "NOTHING",
    "VECTORS",
    "each_vector",
    "everywhere",
    "first_lanes",
    "for_all_columns",
    "loaded",
    "multiples",
    "numbers",
    "store",
]

DOUBLE, INT, INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)

# How many numbers a vector has, how many vectors of a row are added up at once while that many are left, and how many
# sums are under way at any time: enough that none waits for the one before.
LANES, VECTORS, SUMS = 8, 4, 8
VECTOR = ir.VectorType(DOUBLE, LANES)
NOTHING = ir.Constant(VECTOR, [0.0] * LANES)


def numbers(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> list[Any]:
    """Where each array is read or written: from its beginning, or from the number on that is given behind it."""
    kinds, places = signature.args, []
    for k, kind in enumerate(kinds):
        if isinstance(kind, types.Array):
            data = context.make_array(kind)(context, builder, args[k]).data
            alone = k + 1 == len(kinds) or isinstance(kinds[k + 1], types.Array) or kind.dtype == types.int64
            places.append(data if alone else builder.gep(data, [args[k + 1]]))
    return places


def each_vector(builder: Any, width: Any, body: Callable[[Any, Any], None]) -> None:
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


def for_all_columns(
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
        sums = [loaded(builder, builder.gep(start, [at]), vectors) for _, start in rows]

        def brought(j: Any, at: Any = at, vectors: int = vectors) -> list[list[Any]]:
            return terms(j, at, vectors)

        left = None if vectors > 1 else builder.sub(width, at)
        for (out, _), totals in zip(rows, _joined(builder, sums, apart, count, brought, join), strict=True):
            store(builder, builder.gep(out, [at]), totals, left)
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


def multiples(builder: Any, row: list[Any], factor: Any) -> list[Any]:
    """A row of vectors times a number."""
    factors = everywhere(builder, factor)
    return [builder.fmul(one, factors, flags=("contract",)) for one in row]


def everywhere(builder: Any, number: Any) -> Any:
    """A vector of the same number."""
    nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INDEX, LANES), [0] * LANES))


def first_lanes(builder: Any, count: Any) -> Any:
    """Which numbers of a vector are among the first so many."""
    lanes = ir.Constant(ir.VectorType(INT, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lanes, everywhere(builder, count))


def loaded(builder: Any, at: Any, vectors: int) -> list[Any]:
    """So many vectors, one behind the other."""
    places = [builder.gep(at, [_whole(k * LANES)]) for k in range(vectors)]
    return [builder.load(builder.bitcast(place, VECTOR.as_pointer()), align=8) for place in places]


def store(builder: Any, at: Any, row: list[Any], left: Any) -> None:
    """Write vectors; of a single one only as many numbers as are left of the row, where these are fewer."""
    for k, vector in enumerate(row):
        place = builder.bitcast(builder.gep(at, [_whole(k * LANES)]), VECTOR.as_pointer())
        if left is not None:
            vector = builder.select(first_lanes(builder, left), vector, builder.load(place, align=8))
        builder.store(vector, place, align=8)


def _whole(number: int) -> Any:
    return ir.Constant(INT, number)
