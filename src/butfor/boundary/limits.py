"""The limit on the memory that a file or an argument may claim, checked before anything is allocated."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from butfor.errors import ButforError, GraphError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["VARIABLE", "array_bytes", "check_size", "limit"]

VARIABLE = "BUTFOR_MAX_BYTES"
DEFAULT = 4 * 2**30
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def limit() -> int:
    """How many bytes a single file, array or model may take: 4 GiB, or the value of the environment variable.

    Raises:
        InputError: the variable holds no positive whole number.
    """
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return DEFAULT
    if not (given.isascii() and given.isdigit() and len(given) <= 30 and int(given) > 0):
        raise InputError(
            f"the environment variable {VARIABLE} is {given[:40]!r}; give a number of bytes, such as {2 * DEFAULT}"
        )
    return int(given)


def check_size(claimed: int, what: str, error: type[ButforError] = GraphError) -> None:
    """Refuse what would take more memory than is allowed.

    Args:
        claimed: how many bytes it would take.
        what: what would take them, such as "the array x of graph.npz".
        error: the class of the exception.

    Raises:
        error: it is more than `limit` allows.
    """
    most = limit()
    if claimed > most:
        raise error(
            f"{what} would take {_readable(claimed)} of memory, and the limit is {_readable(most)}: if that is meant, "
            f"raise the limit with the environment variable {VARIABLE}={min(claimed, 10**29)}"
        )


def array_bytes(shape: Iterable[int], itemsize: int = 8) -> int:
    """The bytes that an array of this shape takes.

    A side of 0 counts as 1, and an item as at least 8 bytes: rows may be added later, and small items become larger.
    """
    return math.prod(max(1, side) for side in shape) * max(8, itemsize)


def _readable(size: int) -> str:
    power = min((max(size, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    shown = size // 2 ** (10 * power)
    if shown >= 10**6:
        return f"more than a million {_UNITS[power]}"
    return f"{size} bytes" if power == 0 else f"{size / 2 ** (10 * power):.3g} {_UNITS[power]}"
