"""The largest of many numbers: sorted, or only summed up, in the space that they are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from butfor.oracle.gcn.kernels import kernel, step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["sort_falling", "sum_of_largest", "sum_of_largest_parts"]

# Of so few, or for so few, the largest are found one by one.
FEW = 8


@kernel
def sort_falling(values: Floats, other: Floats, count: int) -> None:
    """Sort the first so many values, the largest first, and move ``other`` along (heapsort: it needs no space)."""
    for start in range(count // 2 - 1, -1, -1):
        _sift(values, other, start, count)
    for end in range(count - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        other[0], other[end] = other[end], other[0]
        _sift(values, other, 0, end)


@step
def _sift(values: Floats, other: Floats, start: int, end: int) -> None:
    root = start
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and values[child + 1] < values[child]:
            child += 1
        if values[root] <= values[child]:
            break
        values[root], values[child] = values[child], values[root]
        other[root], other[child] = other[child], other[root]
        root = child


@kernel
def sum_of_largest(values: Floats, count: int, most: int) -> Any:
    """The sum of the ``most`` largest of the first ``count`` values, which are moved about (quickselect)."""
    if most <= 0:
        return 0.0
    # Those before ``low`` are among the largest and those from ``high`` on are not.
    low, high = 0, count
    while low < most < high:
        a, b, c = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high - 1
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        # Now values up to j are at least the pivot, from i on at most, and between them equal to it.
        if most <= j + 1:
            high = j + 1
        elif most >= i:
            low = i
        else:
            break
    total = 0.0
    for k in range(min(most, count)):
        total += values[k]
    return total


@kernel
def sum_of_largest_parts(values: Floats, parts: Floats, count: int, most: float) -> Any:
    """The largest sum of ``most`` parts: there are ``parts[i]`` of the size values[i], all positive. All are moved."""
    total, left = 0.0, most
    if count > FEW and most > FEW:
        sort_falling(values, parts, count)
    for i in range(count):
        if count <= FEW or most <= FEW:
            largest = i
            for k in range(i + 1, count):
                if values[k] > values[largest]:
                    largest = k
            values[i], values[largest] = values[largest], values[i]
            parts[i], parts[largest] = parts[largest], parts[i]
        total += values[i] * min(parts[i], left)
        left -= parts[i]
        if left <= 0:
            break
    return total
