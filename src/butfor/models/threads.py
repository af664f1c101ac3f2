"""How many threads torch may use on a graph of this size."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["threads_for"]

# Below this many edges one thread is quicker than several.
SMALL = 100_000


@contextmanager
def threads_for(num_edges: int) -> Iterator[None]:
    """Inside this context, let torch use only one thread if the graph is small.

    More threads gain nothing there, stall for minutes on a busy machine, and sum in another order, so
    that the same seed would train another model.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if num_edges < SMALL else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
