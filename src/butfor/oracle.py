"""The oracle: what does the model say after these edits?

`ModelOracle` knows nothing of any kind of layer. It deletes the edges for real, puts many edited
neighbourhoods side by side into one disjoint graph and runs the user's own model on it once. Gradients
come from the model's own ``edge_weight`` argument, where weight 0 was *seen* to equal deletion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.edits import pack
from butfor.gcn.degrees import degrees_from
from butfor.predictor import untouched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits import Edits
    from butfor.graph import Graph
    from butfor.predictor import Predictor

__all__ = ["Influence", "ModelOracle", "Oracle", "Relaxation"]

# Numbers held for one layer in one run of the model: bounds the memory, whatever is asked. A layer holds
# about as many as there are nodes and edges, times the features; hidden layers are rarely narrower than 64.
MAX_NUMBERS = 40_000_000
NARROWEST = 64

# How far 0/1 weights may be from true deletion before a relaxation is called unfaithful.
FAITHFUL = 1e-4


class Relaxation(ABC):
    """The model's scores for several targets as a smooth function of one weight per edit.

    Weight 1 keeps an edge and 0 deletes it. The weights of all targets lie in one vector; those of
    target ``i`` are ``pointers[i]`` to ``pointers[i + 1]``.
    """

    pointers: NDArray[np.int64]

    @abstractmethod
    def logits(self, weights: Tensor, degrees: Tensor | None = None) -> Tensor:
        """One row of scores for each target, differentiable in the weights.

        ``degrees``, where given, are the weights that node degrees are counted with in layers that
        normalise by degree; otherwise degrees follow ``weights``.
        """


@dataclass(frozen=True)
class Influence:
    """What further edits can do at most.

    Attributes:
        limits: how far each of the free edits lowers the margin at most, whichever others went before it.
        total: how far all that may follow lower it together at most.
    """

    limits: NDArray[np.float64]
    total: float


class Oracle(ABC):
    """Answers for many edit sets of many targets at once."""

    @abstractmethod
    def logits(self, asked: Sequence[tuple[Edits, NDArray[np.int64]]]) -> list[Tensor]:
        """For each target's edits and packed edit sets, one row of scores per set, by true deletion."""

    @abstractmethod
    def relax(self, asked: Sequence[Edits]) -> Relaxation | None:
        """The relaxation for these targets; None where the model has no faithful one."""

    @abstractmethod
    def extensions(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> Tensor:
        """The scores after prefix ``i`` and candidate ``j``, for j from pointers[i] to pointers[i + 1]."""

    @abstractmethod
    def pace(self, edits: Edits) -> int:
        """How many edit sets of this target it answers in one go; a question may be cut into such pieces."""

    @abstractmethod
    def relevant(self, edits: Edits) -> NDArray[np.bool_]:
        """Which edits can matter at all: False only where it is certain that they cannot."""

    @abstractmethod
    def alike(self, edits: Edits) -> NDArray[np.int64]:
        """A number for each edit; edits with the same number may be exchanged in any set, at the same cost."""

    @abstractmethod
    def influence(
        self,
        edits: Edits,
        pairs: NDArray[np.float64],
        removed: Sequence[int],
        free: NDArray[np.int64],
        more: int,
    ) -> Influence | None:
        """How far further edits can lower a margin at most; None where nothing is proved.

        It holds for every set of ``removed`` and at most ``more`` of the ``free`` edits, and for each
        combination of scores that is a row of ``pairs``.
        """


@dataclass(frozen=True, eq=False)
class ModelOracle(Oracle):
    """The oracle for any PyG model.

    Attributes:
        predictor: the model.
        graph: the whole graph.
        separable: whether copies side by side do not disturb each other. A model that pools or
            normalises over all nodes is not separable, and sees one edited graph at a time.
        max_numbers: how much one run of the model may hold (see `MAX_NUMBERS`).
    """

    predictor: Predictor
    graph: Graph
    separable: bool = True
    max_numbers: int = MAX_NUMBERS

    def logits(self, asked: Sequence[tuple[Edits, NDArray[np.int64]]]) -> list[Tensor]:
        """True deletion, in runs that fit into memory."""
        pieces = [
            (edits, piece)
            for edits, sets in asked
            for piece in np.array_split(pack(sets), self._cuts(edits, len(sets)))
            if len(piece)
        ]
        rows: list[Tensor] = []
        with untouched(self.predictor.model), torch.no_grad():
            for run in self._runs(pieces):
                rows.append(self._run(run))
        together = torch.cat(rows) if rows else self.predictor.logits[:0]
        return list(torch.split(together, [len(sets) for _, sets in asked]))

    def relax(self, asked: Sequence[Edits]) -> Relaxation | None:
        """By the model's ``edge_weight``, if 0/1 weights give what deletion gives on these targets."""
        if not (self.predictor.takes_weight and self.separable and asked):
            return None
        relaxation = _ModelRelaxation(self, asked)
        try:
            return relaxation if self._faithful(relaxation, asked) else None
        except (RuntimeError, TypeError, ValueError):
            # It names an edge_weight, or takes anything, but cannot do with one.
            return None

    def extensions(
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
        """Nothing is known of the layers, so any edit may matter."""
        return np.ones(len(edits), dtype=bool)

    def alike(self, edits: Edits) -> NDArray[np.int64]:
        """Nothing is known of the layers, so no two edits are alike."""
        return np.arange(len(edits))

    def influence(
        self,
        edits: Edits,  # noqa: ARG002
        pairs: NDArray[np.float64],  # noqa: ARG002
        removed: Sequence[int],  # noqa: ARG002
        free: NDArray[np.int64],  # noqa: ARG002
        more: int,  # noqa: ARG002
    ) -> Influence | None:
        """Nothing is known of the layers, so nothing is proved."""
        return None

    def pace(self, edits: Edits) -> int:
        """As many copies as fit into one run of the model."""
        return max(self.max_numbers // self._numbers(edits), 1) if self.separable else 1

    def _numbers(self, edits: Edits) -> int:
        near = edits.neighbourhood
        return (near.num_nodes + near.num_edges) * max(self.graph.x.size(1), NARROWEST)

    def _cuts(self, edits: Edits, count: int) -> int:
        if not self.separable:
            return max(count, 1)
        return max(-(-count // self.pace(edits)), 1)

    def _runs(self, pieces: list[tuple[Edits, NDArray[np.int64]]]) -> list[list[tuple[Edits, NDArray[np.int64]]]]:
        runs: list[list[tuple[Edits, NDArray[np.int64]]]] = []
        room = 0
        for edits, sets in pieces:
            size = self._numbers(edits) * len(sets)
            if not runs or size > room or not self.separable:
                runs.append([])
                room = self.max_numbers
            runs[-1].append((edits, sets))
            room -= size
        return runs

    def _run(self, run: list[tuple[Edits, NDArray[np.int64]]]) -> Tensor:
        nodes, ends, columns, centres = [], [], [], []
        offset = 0
        for edits, sets in run:
            near = edits.neighbourhood
            shifts = offset + near.num_nodes * np.arange(len(sets))
            copy, column = np.nonzero(edits.kept(sets))
            ends.append(near.edge_index[:, column] + shifts[copy])
            columns.append(near.edges[column])
            nodes.append(np.tile(near.nodes, len(sets)))
            centres.append(near.centres[0] + shifts)
            offset += near.num_nodes * len(sets)
        return self._score(nodes, ends, columns, centres)

    def _score(self, *parts: list[NDArray[np.int64]]) -> Tensor:
        device = self.graph.x.device
        nodes, ends, columns, centres = (torch.from_numpy(np.concatenate(part, axis=-1)).to(device) for part in parts)
        carried = self.graph.edge_fields()
        fields = {name: carried[name][columns] for name in self.predictor.fields}
        return self.predictor(self.graph.x[nodes], ends, fields)[centres]

    def _faithful(self, relaxation: Relaxation, asked: Sequence[Edits]) -> bool:
        random = np.random.default_rng(0)
        first = asked[:: max(len(asked) // 8, 1)][:8]
        for probability in (0.0, 0.1, 0.5, 1.0):
            masks = [random.random(len(edits)) < probability for edits in asked]
            weights = torch.from_numpy(1.0 - np.concatenate(masks)).to(self.predictor.logits)
            with torch.no_grad():
                soft = relaxation.logits(weights)
            chosen = {id(edits): np.flatnonzero(mask)[None] for edits, mask in zip(asked, masks, strict=True)}
            hard = torch.cat(self.logits([(edits, chosen[id(edits)]) for edits in first]))
            rows = [i for i, edits in enumerate(asked) if any(edits is other for other in first)]
            if not torch.allclose(soft[rows], hard, rtol=FAITHFUL, atol=FAITHFUL):
                return False
        return True


class _ModelRelaxation(Relaxation):
    """All neighbourhoods side by side, their edges weighted."""

    def __init__(self, oracle: ModelOracle, asked: Sequence[Edits]) -> None:
        near = [edits.neighbourhood for edits in asked]
        device = oracle.graph.x.device
        shifts = np.concatenate([[0], np.cumsum([place.num_nodes for place in near])])
        self.pointers = np.concatenate([[0], np.cumsum([len(edits) for edits in asked])])
        total = self.pointers[-1]
        edit_of = [
            np.where(e.edit_of < 0, total, e.edit_of + first) for e, first in zip(asked, self.pointers, strict=False)
        ]
        ends = [place.edge_index + shift for place, shift in zip(near, shifts, strict=False)]
        columns = torch.from_numpy(np.concatenate([place.edges for place in near])).to(device)
        fields = oracle.graph.edge_fields()
        self._predictor = oracle.predictor
        self._x = oracle.graph.x[torch.from_numpy(np.concatenate([place.nodes for place in near])).to(device)]
        self._edge_index = torch.from_numpy(np.concatenate(ends, axis=1)).to(device)
        self._fields = {name: fields[name][columns] for name in oracle.predictor.fields}
        self._base = self._fields.pop("edge_weight", None)
        # Edges that no edit deletes share one slot behind the weights, which always holds 1.
        self._edit_of = torch.from_numpy(np.concatenate(edit_of)).to(device)
        self._centres = torch.from_numpy(np.array([p.centres[0] for p in near]) + shifts[:-1]).to(device)

    def logits(self, weights: Tensor, degrees: Tensor | None = None) -> Tensor:
        message = self._columns(weights)
        model = self._predictor.model
        with untouched(model):
            if degrees is None:
                return self._score(message)
            with degrees_from(model, self._edge_index, message, self._columns(degrees)):
                return self._score(message)

    def _columns(self, weights: Tensor) -> Tensor:
        columns = torch.cat([weights, weights.new_ones(1)])[self._edit_of]
        return columns if self._base is None else columns * self._base.view(-1)

    def _score(self, edge_weight: Tensor) -> Tensor:
        fields = {**self._fields, "edge_weight": edge_weight}
        return self._predictor(self._x, self._edge_index, fields)[self._centres]
