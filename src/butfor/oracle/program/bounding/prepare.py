"""The program as it is bounded: with differences of scores as its output, and each softmax as one step.

The interval of a difference is narrower than the difference of intervals. So the matrix of differences is moved towards
the features as far as everything on the way is linear: sums, means, softmax, other matrices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.bounding.scaling import join_scales
from butfor.oracle.program.steps import Concat, Fold, Gather, Linear, Map, Reduce, Value, in_order, made

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.steps import Step

    Matrix = NDArray[np.float64]
    Columns = NDArray[np.int64]

__all__ = ["prepared"]

# Softmax adds a number of at most this size to the sum of weights, so that nothing is divided by 0. The largest weight
# is 1, so that it is lost in rounding.
TINY = 1e-12

COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}


def prepared(out: Value, pairs: Matrix, scales: bool = False) -> Value:
    """A program for the scores in ``out`` times each row of ``pairs``, written so that its intervals are narrow.

    With ``scales``, each mean over edges is one step too, and so is each sum that is divided by another function of how
    many entries it has. The program of ``out`` is not changed.
    """
    copy = _copied(out)
    _join_softmax(copy)
    if scales:
        join_scales(copy)
    result = _times(copy, np.ascontiguousarray(pairs.T))
    _mark_whole_numbers(result)
    return result


def _copied(out: Value) -> Value:
    """A copy of all steps, so that they can be changed."""
    copies: dict[int, Value] = {}
    for step, value in in_order(out):
        again = replace(step, inputs=[copies.get(id(one), one) for one in step.inputs])
        copies[id(value)] = Value(value.space, value.width, step=again)
    return copies[id(out)]


# Softmax.


def _join_softmax(out: Value) -> None:
    """Replace Σ exp(s)·m / Σ exp(s) by one reduction of rows m with scores s."""
    for step, value in in_order(out):
        if isinstance(step, Map) and step.code == "div" and step.columns[0] is None:
            joined = _softmax_of(step)
            if joined is not None:
                value.step = joined


def _softmax_of(step: Map) -> Reduce | None:
    total, share = step.inputs[0].step, _without_tiny(step.inputs[1]).step
    if not isinstance(total, Reduce) or not isinstance(share, Reduce) or len(total.inputs) != 2:
        return None
    if total.code != "sum" or share.code != "share" or total.added is not None or share.added is not None:
        return None
    weights = total.inputs[1]
    if share.inputs[0] is not weights or not _same_entries(total, share):
        return None
    width = step.inputs[0].width
    if not np.array_equal(_columns(total.factor_columns, width), _columns(step.columns[1], width)):
        return None
    scores = _scores(weights, share)
    return None if scores is None else replace(total, code="softmax", inputs=[total.inputs[0], scores])


def _same_entries(total: Reduce, share: Reduce) -> bool:
    """Whether the weights are added up over the same entries, in all rows in which they are.

    Nobody needs the other rows.
    """
    entries = share.source
    same = np.array_equal(total.receiver[entries], share.receiver) and np.array_equal(total.edges[entries], share.edges)
    return same and len(entries) == np.isin(total.receiver, share.receiver).sum() == len(np.unique(entries))


def _without_tiny(value: Value) -> Value:
    """The value that a tiny number was added to, if one was."""
    step = value.step
    if isinstance(step, Map) and step.code == "add" and step.keeps_columns:
        for one, other in (step.inputs, step.inputs[::-1]):
            if other.data is not None and (np.abs(other.data) <= TINY).all():
                return one
    return value


def _scores(weights: Value, share: Reduce) -> Value | None:
    """The scores, if the weights are exp(scores - shift) with one shift for each receiver; else None."""
    power = weights.step
    if not isinstance(power, Map) or power.code != "exp" or not power.keeps_columns:
        return None
    shifted = power.inputs[0].step
    if not isinstance(shifted, Map) or shifted.code != "sub" or not shifted.keeps_columns:
        return None
    scores, highest = shifted.inputs
    gather = highest.step
    if not isinstance(gather, Gather) or not np.array_equal(gather.source[share.source], share.receiver):
        return None
    shift = gather.inputs[0].step
    is_shift = isinstance(shift, Reduce) and shift.code == "shift" and shift.inputs[0] is scores
    return scores if is_shift else None


def _columns(columns: Columns | None, width: int) -> Columns:
    return np.arange(width) if columns is None else columns


# Matrices.


def _times(value: Value, matrix: Matrix) -> Value:
    """The value times a matrix, which is multiplied as early as possible."""
    step, width = value.step, matrix.shape[1]
    if step is None:
        if value.fixed:
            assert value.data is not None
            return Value(value.space, width, value.data @ matrix)
        return _last(value, matrix)
    if isinstance(step, Linear):
        return _plus(_times(step.inputs[0], step.matrix @ matrix), step.added, matrix, value)
    if isinstance(step, Gather):
        return _value(Gather([_times(step.inputs[0], matrix)], step.source), value, width)
    if isinstance(step, Concat):
        return _value(Concat([_times(one, matrix) for one in step.inputs]), value, width)
    if isinstance(step, Fold) and step.code in ("sum", "mean"):
        share = len(step.groups) / value.width if step.code == "mean" else 1.0
        return _times(step.inputs[0], matrix[step.groups] / share)
    if isinstance(step, Reduce) and step.code in ("sum", "mean", "softmax"):
        return _through_reduction(step, value, matrix)
    if isinstance(step, Map) and step.code in ("add", "sub") and all(one.space is not None for one in step.inputs):
        both = [_times(one, _spread(matrix, own, one)) for one, own in zip(step.inputs, step.columns, strict=True)]
        return _value(Map(both, step.code, [None, None]), value, width)
    if isinstance(step, Map) and step.code in ("add", "sub", "mul", "div"):
        return _through_map(step, value, matrix)
    return _last(value, matrix)


def _last(value: Value, matrix: Matrix) -> Value:
    """Multiply by the matrix here: what comes before is not linear."""
    return _value(Linear([value], np.ascontiguousarray(matrix)), value, matrix.shape[1])


def _value(step: Step, like: Value, width: int) -> Value:
    assert like.space is not None
    return made(step, like.space, width)


def _plus(value: Value, added: Value | None, matrix: Matrix, like: Value) -> Value:
    if added is None:
        return value
    assert added.data is not None
    shift = Value(added.space, matrix.shape[1], added.data @ matrix)
    return _value(Map([value, shift], "add", [None, None]), like, matrix.shape[1])


def _spread(matrix: Matrix, columns: Columns | None, value: Value) -> Matrix:
    """The matrix for all columns of a value, where a step reads only some of them, or one several times."""
    if columns is None:
        return matrix
    spread = np.zeros((value.width, matrix.shape[1]))
    np.add.at(spread, columns, matrix)
    return spread


def _by_group(matrix: Matrix, groups: Columns) -> tuple[Matrix, Columns, Columns]:
    """One copy of the matrix for each group of its rows, zero elsewhere, side by side.

    Also, for each column of this: its group, and its column in the matrix.
    """
    number, width = int(groups.max(initial=0)) + 1, matrix.shape[1]
    wide = np.zeros((len(matrix), number, width))
    wide[np.arange(len(matrix)), groups] = matrix
    return wide.reshape(len(matrix), -1), np.repeat(np.arange(number), width), np.tile(np.arange(width), number)


def _added_up(value: Value, groups: Columns) -> Value:
    """The copies that `_by_group` made added up again."""
    width = int(groups.max()) + 1
    return value if value.width == width else _value(Fold([value], "sum", groups), value, width)


def _through_reduction(step: Reduce, value: Value, matrix: Matrix) -> Value:
    if len(step.inputs) == 1:
        wide, of, column = matrix, None, np.arange(matrix.shape[1])
    else:
        wide, of, column = _by_group(matrix, _columns(step.factor_columns, value.width))
    rows = _times(step.inputs[0], wide)
    again = replace(step, inputs=[rows, *step.inputs[1:]], factor_columns=of, added=None)
    result = _added_up(_value(again, value, wide.shape[1]), column)
    return _plus(result, step.added, matrix, value)


def _through_map(step: Map, value: Value, matrix: Matrix) -> Value:
    """Move the matrix before a factor or summand that all rows share, or before a factor for each group of columns."""
    width = matrix.shape[1]
    for i in (0, 1) if step.code in ("mul", "add") else (0,):
        row, own, other, theirs = step.inputs[i], step.columns[i], step.inputs[1 - i], step.columns[1 - i]
        if row.space is None:
            continue
        if other.space is None and other.data is not None:
            constant = other.data[0] if theirs is None else other.data[0][theirs]
            constant = np.broadcast_to(constant, value.width)
            if step.code in ("add", "sub"):
                shift = (constant if step.code == "add" else -constant)[None] @ matrix
                return _plus(
                    _times(row, _spread(matrix, own, row)), Value(None, value.width, shift), np.eye(width), value
                )
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = matrix * (constant if step.code == "mul" else 1 / constant)[:, None]
            if np.isfinite(scaled).all():
                return _times(row, _spread(scaled, own, row))
        elif step.code in ("mul", "div") and (other.width == 1 or theirs is not None):
            groups = np.zeros(value.width, dtype=np.int64) if other.width == 1 else theirs
            assert groups is not None
            if len(np.unique(groups)) * width > 4 * value.width:
                continue
            wide, of, column = _by_group(matrix, groups)
            rows = _times(row, _spread(wide, own, row))
            pair = [(rows, None), (other, of)] if i == 0 else [(other, of), (rows, None)]
            again = Map([one for one, _ in pair], step.code, [columns for _, columns in pair])
            return _added_up(_value(again, value, wide.shape[1]), column)
    return _last(value, matrix)


# Whole numbers.


def _mark_whole_numbers(out: Value) -> None:
    """Set the parameter of each comparison: whether it compares whole numbers, such as degrees, which are not rounded.

    (Single precision is exact up to 2**24. Numbers given are below 2**20; results are not looked at.)
    """
    whole: dict[int, bool] = {}

    def is_whole(value: Value) -> bool:
        if id(value) not in whole:
            data = value.data if value.fixed else None
            whole[id(value)] = data is not None and bool(((np.abs(data) < 2**20) & (data == np.rint(data))).all())
        return whole[id(value)]

    for step, value in in_order(out):
        every = all(is_whole(one) for one in step.inputs)
        if isinstance(step, Map):
            if step.code in COMPARISONS:
                step.parameters = (float(every),)
                every = True
            else:
                stays = step.code in ("add", "sub", "mul", "neg", "relu", "abs", "maximum", "minimum", "clamp")
                every &= stays and all(p == np.rint(p) for p in step.parameters if np.isfinite(p))
        elif isinstance(step, Reduce):
            every &= step.code in ("sum", "amax", "amin") and step.empty == np.rint(step.empty)
            every &= step.added is None or is_whole(step.added)
        elif isinstance(step, (Linear, Fold)):
            every = False
        whole[id(value)] = every
