"""What fast oracles have in common: edit sets are extensions of prefixes, in threads, and the model settles ties."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.oracle.base import Oracle
from butfor.oracle.ties import near_ties

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.oracle.general import ModelOracle

    # Fills the rows of candidates in, for some prefixes and their pointers, in the thread of this number.
    Extend = Callable[[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], None]

__all__ = ["ExtendingOracle"]

# Edit sets that make up for the start of a thread.
WORTH_A_THREAD = 4096

# Rounding in float32 moves logits by about a tenth of this.
NEARLY_A_TIE = 1e-5


@dataclass(frozen=True, eq=False)
class ExtendingOracle(Oracle):
    """An oracle that computes only what each further edit changes.

    Attributes:
        general: the oracle that runs the model itself, and decides what is nearly a tie.
        prefix_work: how many edit sets a prefix is as much work as.
    """

    general: ModelOracle
    prefix_work: ClassVar[int]

    @abstractmethod
    def _compiled(self, edits: Edits, count: int) -> tuple[NDArray[Any], Extend]:
        """An array for the scores of so many edit sets, and what fills it."""

    def logits(self, asked: Sequence[tuple[Edits, NDArray[np.int64]]]) -> list[Tensor]:
        """Each set is a prefix, and nothing after it."""
        answers = []
        for edits, sets in asked:
            rows = pack(sets)
            answers.append(self.extend(edits, rows, np.full(len(rows), -1), np.arange(len(rows) + 1)))
        return answers

    def extend(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> Tensor:
        """By compiled code; where rounding could swap the first and second class, by the model itself."""
        out = self._values(edits, prefixes, candidates, pointers, threads)
        logits = torch.from_numpy(out).to(self.general.predictor.logits)
        close = near_ties(out, NEARLY_A_TIE)
        if len(close):
            rows = np.searchsorted(pointers, close, side="right") - 1
            sets = np.concatenate([prefixes[rows], candidates[close, None]], axis=1)
            # One by one, as they will be verified: in a batch, a processor may round a row otherwise.
            logits[close] = torch.cat([self.general.logits([(edits, one[None])])[0] for one in sets])
        return logits

    def _values(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> NDArray[Any]:
        """The scores as compiled code computes them.

        Prefixes are cut into ranges so that each thread has about as many edit sets; what is computed does not depend
        on it.
        """
        # Another layout would be compiled once more.
        prefixes = np.ascontiguousarray(prefixes)
        out, extend = self._compiled(edits, len(candidates))
        parts = min(threads, (len(candidates) + self.prefix_work * len(prefixes)) // WORTH_A_THREAD + 1)
        if parts == 1:
            extend(0, prefixes, candidates, pointers)
            return out
        cuts = np.unique(np.searchsorted(pointers, np.linspace(0, len(candidates), parts + 1)))
        cuts[-1:] = len(prefixes)

        def run(part: tuple[int, tuple[int, int]]) -> None:
            number, (first, last) = part
            extend(number, prefixes[first:last], candidates, pointers[first : last + 1])

        with ThreadPoolExecutor(len(cuts) - 1) as pool:
            list(pool.map(run, enumerate(pairwise(cuts))))
        return out

    def batch_size(self, edits: Edits) -> int:  # noqa: ARG002
        """Any number is answered one by one; so many take a fraction of a second."""
        return 16_384
