"""What one node sends at least when so many edits hit it, the scales of its senders being as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.gcn.kernels import kernel, step
from butfor.oracle.gcn.selection import sort_falling, sum_of_largest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["fill_table", "hull"]


@kernel
def _depth(count: int, most: int, enumerated: int) -> int:
    """Up to which size all sets of so many edits can be tried."""
    sets, total = 1.0, 1.0
    for size in range(1, most + 1):
        sets = sets * (count - size + 1) / size
        total += sets
        if total > enumerated:
            return size - 1
    return most


@step
def _lower(
    depth: int, degree: float, total: Floats, risk: Floats, own: Floats, bias: Floats, relu: bool, coefs: Floats,
    hidden: Floats, table: Floats,
) -> None:  # fmt: skip
    """Lower the table to what is sent with this degree and this sum of what is received."""
    scale = 1 / np.sqrt(degree)
    width = len(own)
    for j in range(width):
        z = scale * (scale * own[j] + total[j]) + bias[j]
        hidden[j] = max(z, 0.0) if relu else z
    for p in range(len(coefs)):
        row = coefs[p]
        value = 0.0
        for j in range(width):
            value += row[j] * hidden[j]
        table[0, p, depth] = min(table[0, p, depth], scale * value)
        table[1, p, depth] = min(table[1, p, depth], scale * (value - scale * risk[p]))


@kernel
def _enumerate(
    degree: float, loop: float, total: Floats, risk: Floats, own: Floats, bias: Floats, relu: bool, coefs: Floats,
    bundles: Floats, risks: Floats, weights: Floats, count: int, deepest: int, sums: Floats, risk_sums: Floats,
    degrees: Floats, following: NDArray[np.int64], hidden: Floats, table: Floats,
) -> None:  # fmt: skip
    """The table up to ``deepest`` by trying all sets."""
    width = len(own)
    for j in range(width):
        sums[0, j] = total[j]
    for p in range(len(coefs)):
        risk_sums[0, p] = risk[p]
    degrees[0] = degree
    following[0] = 0
    depth = 0
    _lower(0, degree, sums[0], risk_sums[0], own, bias, relu, coefs, hidden, table)
    while depth >= 0:
        b = following[depth]
        if b < count and depth < deepest:
            following[depth] = b + 1
            before, after, gone = sums[depth], sums[depth + 1], bundles[b]
            for j in range(width):
                after[j] = before[j] - gone[j]
            for p in range(len(coefs)):
                risk_sums[depth + 1, p] = risk_sums[depth, p] - risks[b, p]
            degrees[depth + 1] = max(degrees[depth] - weights[b], loop)
            depth += 1
            following[depth] = b + 1
            _lower(depth, degrees[depth], sums[depth], risk_sums[depth], own, bias, relu, coefs, hidden, table)
        else:
            depth -= 1


@kernel
def _relax(
    size: int, low_scale: float, high_scale: float, total: Floats, risk: Floats, own: Floats, bias: Floats, relu: bool,
    coefs: Floats, bundles: Floats, risks: Floats, count: int, top: Floats, bottom: Floats,
    low: Floats, high: Floats, slope: Floats, gain: Floats, other: Floats, table: Floats,
) -> None:  # fmt: skip
    """The table at one size by a linear bound of every ReLU, or by intervals where that is better."""
    width = len(own)
    for j in range(width):
        least, most = total[j] - top[j], total[j] - bottom[j]
        low[j] = bias[j] + min(low_scale * low_scale * own[j], high_scale * high_scale * own[j])
        high[j] = bias[j] + max(low_scale * low_scale * own[j], high_scale * high_scale * own[j])
        low[j] += min(low_scale * least, high_scale * least)
        high[j] += max(low_scale * most, high_scale * most)
    one_scale = high_scale - low_scale <= 1e-12 * high_scale
    for p in range(len(coefs)):
        boxed = 0.0
        for j in range(width):
            a = coefs[p, j]
            z = low[j] if a > 0 else high[j]
            boxed += a * (max(z, 0.0) if relu else z)
        best = min(low_scale * boxed, high_scale * boxed)
        risky = best - high_scale * high_scale * max(risk[p], 0.0)
        if one_scale:
            scale = low_scale
            value = 0.0
            for j in range(width):
                a = coefs[p, j]
                slope[j] = a
                shift = 0.0
                if relu and high[j] <= 0:
                    slope[j] = 0.0
                elif relu and low[j] < 0:
                    if a > 0:
                        slope[j] = a if high[j] > -low[j] else 0.0
                    else:
                        slope[j] = a * high[j] / (high[j] - low[j])
                        shift = -slope[j] * low[j]
                value += slope[j] * (scale * (scale * own[j] + total[j]) + bias[j]) + shift
            for b in range(count):
                row = bundles[b]
                fall = 0.0
                for j in range(width):
                    fall += slope[j] * row[j]
                gain[b] = fall
                other[b] = fall - risks[b, p]
            falls, rest = sum_of_largest(gain, count, size), sum_of_largest(other, count, size)
            best = max(best, scale * (value - scale * falls))
            risky = max(risky, scale * (value - scale * (risk[p] + rest)))
        table[0, p, size] = best
        table[1, p, size] = risky


@kernel
def hull(values: Floats, last: int, slopes: Floats, counts: Floats, start: int) -> int:
    """The increments of the least concave function above values[0 .. last]; returns where they end.

    They fall, each with how many steps it lasts. values[0] is 0 and no value is smaller.
    """
    at, end = 0, start
    while at < last:
        best, to = -1.0, at + 1
        for i in range(at + 1, last + 1):
            steep = (values[i] - values[at]) / (i - at)
            if steep >= best:
                best, to = steep, i
        if best <= 0.0:
            break
        slopes[end], counts[end] = best, to - at
        end += 1
        at = to
    return end


@kernel
def fill_table(
    degree: float, loop: float, total: Floats, risk: Floats, own: Floats, bias: Floats, relu: bool, coefs: Floats,
    bundles: Floats, risks: Floats, weights: Floats, count: int, most: int, sums: Floats, risk_sums: Floats,
    degrees: Floats, following: NDArray[np.int64], vectors: Floats, ordered: Floats, gain: Floats, other: Floats,
    unused: Floats, enumerated: int, table: Floats,
) -> None:  # fmt: skip
    """table[0, p, i] = what the node sends at least, by coefficients coefs[p], where exactly i of its edits are made.

    ``own`` is its own message times the weight of its loop, ``total`` what it receives, ``bundles`` and ``weights``
    what each edit takes from that and from its degree. table[1, p, i] is the same if what it sends is also less by its
    squared scale times ``risk``, of which each edit takes ``risks``.
    """
    width = len(own)
    for p in range(len(coefs)):
        for i in range(most + 1):
            table[0, p, i] = table[1, p, i] = np.inf
    deepest = _depth(count, most, enumerated)
    _enumerate(
        degree, loop, total, risk, own, bias, relu, coefs, bundles, risks, weights, count, deepest, sums, risk_sums,
        degrees, following, vectors[0], table,
    )  # fmt: skip
    if deepest == most:
        return
    # Sorted sums of the largest and of the smallest so many, in each channel and of the weights.
    for j in range(width):
        for b in range(count):
            gain[b] = bundles[b, j]
        sort_falling(gain, unused, count)
        for b in range(count):
            ordered[j, b] = gain[b]
    for b in range(count):
        gain[b] = weights[b]
    sort_falling(gain, unused, count)
    for b in range(count):
        ordered[width, b] = gain[b]
    top, bottom, low, high, slope = vectors[1], vectors[2], vectors[3], vectors[4], vectors[5]
    for j in range(width):
        top[j] = bottom[j] = 0.0
    heavy = light = 0.0
    for size in range(1, most + 1):
        for j in range(width):
            top[j] += ordered[j, size - 1]
            bottom[j] += ordered[j, count - size]
        heavy += ordered[width, size - 1]
        light += ordered[width, count - size]
        if size > deepest:
            high_scale = 1 / np.sqrt(max(degree - heavy, loop))
            low_scale = 1 / np.sqrt(max(degree - light, loop))
            _relax(
                size, low_scale, high_scale, total, risk, own, bias, relu, coefs, bundles, risks, count, top, bottom,
                low, high, slope, gain, other, table,
            )  # fmt: skip
