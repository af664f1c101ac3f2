"""What fast oracles have in common when they extend prefixes: threads, and ties."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.oracle.general import ModelOracle

__all__ = ["by_threads", "ties_settled"]

# Edit sets that make up for the start of a thread.
WORTH_A_THREAD = 4096

# Rounding in float32 moves logits by about a tenth of this.
NEARLY_A_TIE = 1e-5


def by_threads(
    run: Callable[[int, int, int], None], pointers: NDArray[np.int64], threads: int, prefix_work: int
) -> None:
    """Call ``run(number, first, last)`` for ranges of prefixes, each in a thread of that number.

    A prefix is as much work as ``prefix_work`` edit sets. Ranges are cut so that each thread has about as many sets;
    what is computed does not depend on it.
    """
    prefixes, sets = len(pointers) - 1, int(pointers[-1])
    parts = min(threads, (sets + prefix_work * prefixes) // WORTH_A_THREAD + 1)
    cuts = np.unique(np.searchsorted(pointers, np.linspace(0, sets, parts + 1)))
    cuts[-1:] = prefixes
    if len(cuts) > 2:
        with ThreadPoolExecutor(len(cuts) - 1) as pool:
            list(pool.map(lambda part: run(part[0], *part[1]), enumerate(pairwise(cuts))))
    else:
        run(0, 0, prefixes)


def ties_settled(
    logits: Tensor,
    general: ModelOracle,
    edits: Edits,
    prefixes: NDArray[np.int64],
    candidates: NDArray[np.int64],
    pointers: NDArray[np.int64],
) -> Tensor:
    """The same logits, but those of the model itself where rounding could swap the first and second class."""
    second, first = np.partition(logits.cpu().double().numpy(), -2, axis=1)[:, -2:].T
    close = np.flatnonzero(first - second <= NEARLY_A_TIE * (1 + np.abs(first)))
    if len(close):
        rows = np.searchsorted(pointers, close, side="right") - 1
        sets = np.concatenate([prefixes[rows], candidates[close, None]], axis=1)
        logits[close] = general.logits([(edits, sets)])[0]
    return logits
