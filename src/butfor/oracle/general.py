"""The general oracle: it knows nothing of any kind of layer.

It deletes the edges for real, puts many edited neighbourhoods side by side into one disjoint graph and runs the user's
own model on it once. It is the reference for all others, and answers alone for models that cannot be traced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.oracle.base import Oracle
from butfor.predict.batch import EditedBatch
from butfor.predict.preserved import preserved
from butfor.predict.truth import logits_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.graph.graph import Graph
    from butfor.predict.predictor import Predictor

__all__ = ["ModelOracle"]

# Numbers held for one layer in one run of the model: bounds the memory, whatever is asked. A layer holds about as many
# as there are nodes and edges, times the features; hidden layers are rarely narrower than 64.
MAX_NUMBERS = 40_000_000
NARROWEST = 64


@dataclass(frozen=True, eq=False)
class ModelOracle(Oracle):
    """The oracle for any PyG model.

    Attributes:
        predictor: the model.
        can_batch: whether edited copies may share a run. False for a model that pools or normalises over all nodes and
            takes no ``batch``: it sees one edited graph at a time.
        max_numbers: how much one run of the model may hold (see `MAX_NUMBERS`).
    """

    predictor: Predictor
    can_batch: bool = True
    max_numbers: int = MAX_NUMBERS

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.predictor.graph

    def logits(self, asked: Sequence[tuple[Edits, NDArray[np.int64]]]) -> list[Tensor]:
        """True deletion, in runs that fit into memory."""
        pieces = [
            (edits, piece)
            for edits, sets in asked
            for piece in np.array_split(pack(sets), self._cuts(edits, len(sets)))
            if len(piece)
        ]
        rows: list[Tensor] = []
        with preserved(self.predictor.model), torch.no_grad():
            for run in self._runs(pieces):
                rows.append(self._answers(run))
        together = torch.cat(rows) if rows else self.predictor.logits[:0]
        return list(torch.split(together, [len(sets) for _, sets in asked]))

    def _answers(self, run: list[tuple[Edits, NDArray[np.int64]]]) -> Tensor:
        """One run of the model; where it fails on a neighbourhood, of the whole graph."""
        try:
            return self.predictor(EditedBatch.of(run))
        except ModelError:
            single = [(edits, sets[i : i + 1]) for edits, sets in run for i in range(len(sets))]
            half = len(single) // 2
            if half:
                return torch.cat([self._answers(single[:half]), self._answers(single[half:])])
            edits, sets = single[0]
            if not (sets >= 0).any():
                raise
            # What fails on a part may do on the whole graph, and that is what counts.
            return logits_after(self.predictor, edits, sets[0][sets[0] >= 0])[None]

    def relax(self, asked: Sequence[Edits]) -> None:  # noqa: ARG002
        """There is none: of a model that could not be traced nothing is known between an edge and no edge."""
        return

    def extend(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,  # noqa: ARG002
    ) -> Tensor:
        """Each one a set like any other; torch uses threads as it likes."""
        sets = np.repeat(prefixes, np.diff(pointers), axis=0)
        return self.logits([(edits, np.concatenate([sets, candidates[:, None]], axis=1))])[0]

    def relevant(self, edits: Edits) -> NDArray[np.bool_]:
        """Any edit may matter, except of edges that the target does not hear of (see `Neighbourhood.visible`).

        These are left out of every run, and the runs were seen to give the whole graph's scores.
        """
        relevant = np.zeros(len(edits) + 1, dtype=bool)
        relevant[edits.changes.edit] = True
        owner = np.concatenate([edits.edit_of, edits.new_edit])
        relevant[owner[edits.visible]] = True
        return relevant[:-1]

    def batch_size(self, edits: Edits) -> int:
        """As many copies as fit into one run of the model."""
        return max(int(self.max_numbers // self._numbers(edits)), 1) if self.can_batch else 1

    def _numbers(self, edits: Edits) -> int:
        near = edits.neighbourhood
        size: int = near.num_nodes + edits.all_ends.shape[1]
        return size * max(self._width, NARROWEST)

    @property
    def _width(self) -> int:
        widths: list[int] = [store.x.size(1) for store in self.graph.data.node_stores]
        return max(widths)

    def pieces(self, asked: Sequence[Edits]) -> Iterator[tuple[int, int]]:
        """Where to cut a list of targets, so that the neighbourhoods of each piece fit into one run of the model."""
        start = room = 0
        for number, edits in enumerate(asked):
            if number > start and room < self._numbers(edits):
                yield start, number
                start = number
            room = (self.max_numbers if number == start else room) - self._numbers(edits)
        if asked:
            yield start, len(asked)

    def _cuts(self, edits: Edits, count: int) -> int:
        if not self.can_batch:
            return max(count, 1)
        return max(-(-count // self.batch_size(edits)), 1)

    def _runs(self, pieces: list[tuple[Edits, NDArray[np.int64]]]) -> list[list[tuple[Edits, NDArray[np.int64]]]]:
        runs: list[list[tuple[Edits, NDArray[np.int64]]]] = []
        room = 0
        for edits, sets in pieces:
            size = self._numbers(edits) * len(sets)
            if not runs or size > room or not self.can_batch:
                runs.append([])
                room = self.max_numbers
            runs[-1].append((edits, sets))
            room -= size
        return runs
