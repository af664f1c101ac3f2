"""The oracle: what does the model say after these edits?

`ModelOracle` knows nothing of any kind of layer. It deletes the edges for real, puts many edited
neighbourhoods side by side into one disjoint graph and runs the user's own model on it once. Gradients
come from soft edges (`butfor.oracle.soft_edges`) and features, where 0/1 weights were *seen* to equal the true edits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.oracle.soft_edges import soft_edges
from butfor.predict.batch import Copies
from butfor.predict.inputs import spoilable
from butfor.predict.preserved import untouched
from butfor.result.verify import scores_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.graph.graph import Graph
    from butfor.predict.inputs import Inputs
    from butfor.predict.predictor import Predictor

__all__ = ["Influence", "ModelOracle", "Oracle", "Relaxation"]

# Numbers held for one layer in one run of the model: bounds the memory, whatever is asked. A layer holds
# about as many as there are nodes and edges, times the features; hidden layers are rarely narrower than 64.
MAX_NUMBERS = 40_000_000
NARROWEST = 64


class Relaxation(ABC):
    """The model's scores for several targets as a smooth function of one weight per edit.

    Weight 1 leaves everything as it is and 0 makes the edit: an edge is gone, or there, or a feature has its
    new value. The weights of all targets lie in one vector; those of target ``i`` are ``pointers[i]`` to
    ``pointers[i + 1]``.
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
        """For each target's edits and packed edit sets, one row of scores per set, by making the edits."""

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

    @property
    def knows_layers(self) -> bool:
        """Whether it follows from the model's layers that nothing beyond the neighbourhood matters to the target."""
        return False

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
            normalises over all nodes without being told of copies is not, and sees one edited graph at a time.
        max_numbers: how much one run of the model may hold (see `MAX_NUMBERS`).
    """

    predictor: Predictor
    graph: Graph
    separable: bool = True
    max_numbers: int = MAX_NUMBERS
    _last: dict[Edits, Relaxation | None] = field(default_factory=dict, repr=False)

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
                rows.append(self._answers(run))
        together = torch.cat(rows) if rows else self.predictor.logits[:0]
        return list(torch.split(together, [len(sets) for _, sets in asked]))

    def _answers(self, run: list[tuple[Edits, NDArray[np.int64]]]) -> Tensor:
        """One run of the model; where it fails on a neighbourhood, of the whole graph."""
        try:
            return self.predictor(Copies.of(run))
        except ModelError:
            single = [(edits, sets[i : i + 1]) for edits, sets in run for i in range(len(sets))]
            half = len(single) // 2
            if half:
                return torch.cat([self._answers(single[:half]), self._answers(single[half:])])
            edits, sets = single[0]
            if not (sets >= 0).any():
                raise
            # What fails on a part may do on the whole graph, and that is what counts.
            return scores_after(self.predictor, edits, sets[0][sets[0] >= 0])[None]

    def relax(self, asked: Sequence[Edits]) -> Relaxation | None:
        """By soft edges and features, if 0/1 weights give what the true edits give on these targets."""
        if not asked or self.graph.types is not None or (len(asked) > 1 and not self.separable):
            return None
        if len(asked) > 1:
            return self._relaxed(asked)
        # A search asks for the same one again and again.
        for last, relaxation in list(self._last.items()):
            if last is asked[0]:
                return relaxation
        made = self._relaxed(asked)
        self._last.clear()
        self._last[asked[0]] = made
        return made

    def _relaxed(self, asked: Sequence[Edits]) -> Relaxation | None:
        try:
            relaxation = _ModelRelaxation(self, asked)
            weights = torch.ones(int(relaxation.pointers[-1])).to(self.predictor.logits).requires_grad_()
            scores = relaxation.logits(weights)
            if not scores.requires_grad:
                return None
            torch.autograd.grad(scores.sum(), weights, allow_unused=True)
            return relaxation if self._faithful(relaxation, asked) else None
        except (RuntimeError, ModelError):
            # A layer is called in a way that soft edges do not know, or the model writes over what gradients need.
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
        """Any edit may matter, except of edges that the target does not hear of (see `Neighbourhood.heard`).

        These are left out of every run, and the runs were seen to give the whole graph's scores.
        """
        relevant = np.zeros(len(edits) + 1, dtype=bool)
        relevant[edits.changes.edit] = True
        owner = np.concatenate([edits.edit_of, np.resize(edits.added.edit, len(edits.new_ends))])
        relevant[owner[edits.heard]] = True
        return relevant[:-1]

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
        return max(int(self.max_numbers // self._numbers(edits)), 1) if self.separable else 1

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

    def _faithful(self, relaxation: Relaxation, asked: Sequence[Edits]) -> bool:
        random = np.random.default_rng(0)
        first = asked[:: max(len(asked) // 8, 1)][:8]
        for probability in (0.0, 0.1, 0.5, 1.0):
            masks = [edits.tidy(random.random((1, len(edits))) < probability)[0] for edits in asked]
            weights = torch.from_numpy(1.0 - np.concatenate(masks)).to(self.predictor.logits)
            with torch.no_grad():
                soft = relaxation.logits(weights)
            chosen = {id(edits): np.flatnonzero(mask)[None] for edits, mask in zip(asked, masks, strict=True)}
            hard = torch.cat(self.logits([(edits, chosen[id(edits)]) for edits in first]))
            rows = [i for i, edits in enumerate(asked) if any(edits is other for other in first)]
            if not all(map(self.predictor.same, soft[rows], hard)):
                return False
        return True


class _ModelRelaxation(Relaxation):
    """All neighbourhoods side by side, with all edges that there are or may be, their weights between 0 and 1."""

    def __init__(self, oracle: ModelOracle, asked: Sequence[Edits]) -> None:
        self._predictor = oracle.predictor
        self.pointers = np.concatenate([[0], np.cumsum([len(edits) for edits in asked])])
        nothing = pack([()])
        copies = Copies.of([(edits, nothing) for edits in asked])
        ends, columns, edit_of, added = [], [], [], []
        changes: list[tuple[NDArray[Any], ...]] = []
        row = 0
        for edits, first in zip(asked, self.pointers, strict=False):
            near, new = edits.neighbourhood, np.resize(edits.added.edit, len(edits.new_ends))
            heard = edits.heard
            ends.append(edits.all_ends[:, heard] + row)
            columns.append(np.concatenate([near.edges, np.full(len(new), -1)])[heard])
            # Edges that belong to no edit share one slot behind the weights, which always holds 1.
            own = np.where(edits.edit_of < 0, self.pointers[-1], edits.edit_of + first)
            edit_of.append(np.concatenate([own, new + first])[heard])
            added.append((np.arange(len(own) + len(new)) >= len(own))[heard])
            what = edits.changes
            changes.append((what.node + row, what.feature, what.after - what.before, what.edit + first))
            row += near.num_nodes
        self._inputs = oracle.predictor.inputs(
            replace(copies, edge_index=np.concatenate(ends, axis=1), columns=np.concatenate(columns))
        )
        device = oracle.graph.device
        self._edit_of = torch.from_numpy(np.concatenate(edit_of)).to(device)
        self._added = torch.from_numpy(np.concatenate(added)).to(device)
        self._changes = [torch.from_numpy(np.concatenate(part)).to(device) for part in zip(*changes, strict=True)]

    def logits(self, weights: Tensor, degrees: Tensor | None = None) -> Tensor:
        inputs, model = self._changed(weights), self._predictor.model
        counted = None if degrees is None else self._columns(degrees)
        with untouched(model), soft_edges(model, inputs.edge_index, self._columns(weights), counted):
            return self._predictor.score(inputs)

    def _columns(self, weights: Tensor) -> Tensor:
        columns = torch.cat([weights, weights.new_ones(1)])[self._edit_of]
        return torch.where(self._added, 1 - columns, columns)

    def _changed(self, weights: Tensor) -> Inputs:
        inputs = spoilable(self._inputs)
        row, feature, difference, edit = self._changes
        if not len(edit):
            return inputs
        step = (1 - weights[edit]) * difference.to(weights)
        return replace(inputs, x=inputs.x.index_put((row, feature), step.to(inputs.x.dtype), accumulate=True))
