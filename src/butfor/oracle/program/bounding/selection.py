"""The smallest of some numbers without sorting all of them; values are reordered in place."""

from __future__ import annotations

from typing import Any

from butfor.oracle.program.kernels.flat import called, kernel

__all__ = ["largest", "rank", "smallest", "smallest_of_some", "sort"]

# So few are found as quickly by looking for one after the other.
FEW = 4


@called
def smallest(values: Any, count: int, number: int) -> float:
    """The sum of the ``number`` smallest values, which are moved to the front."""
    number = min(number, count)
    if number == count:
        pass
    elif number <= FEW:
        for n in range(number):
            at = n
            for k in range(n + 1, count):
                if values[k] < values[at]:
                    at = k
            values[n], values[at] = values[at], values[n]
    else:
        _select(values, count, number)
    total = 0.0
    for k in range(number):
        total += values[k]
    return total


@kernel
def _select(values: Any, count: int, number: int) -> None:
    """Quickselect: move the ``number`` smallest to the front, in any order."""
    first, last = 0, count - 1
    while first < last:
        middle = (first + last) // 2
        a, b, c = values[first], values[middle], values[last]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if number - 1 <= j:
            last = j
        elif number - 1 >= i:
            first = i
        else:
            return


@kernel
def smallest_of_some(values: Any, count: int, least: int, most: int) -> float:
    """The smallest sum of ``least`` to ``most`` of the values."""
    negative = 0
    for k in range(count):
        negative += values[k] < 0.0
    return smallest(values, count, min(max(negative, least), most))


@kernel
def largest(values: Any, count: int, number: int) -> float:
    """The sum of the ``number`` largest of some values that were stored with their signs turned."""
    return -smallest(values, count, number)


@kernel
def rank(values: Any, count: int, number: int) -> float:
    """The ``number``-th smallest value; inf where there are fewer."""
    if number > count:
        return float("inf")
    smallest(values, count, number)
    found = values[0]
    for k in range(1, number):
        found = max(found, values[k])
    return found


@called
def sort(values: Any, count: int) -> None:
    """Sort the first ``count`` values, the smallest first (Shell's method)."""
    gap = 1
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for n in range(gap, count):
            value, k = values[n], n
            while k >= gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value
        gap //= 3
