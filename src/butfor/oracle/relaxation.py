"""Soft edits for any model: the unmodified model on soft edges and features that lie between old and new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.edits.addition import Additions
from butfor.edits.edits import pack
from butfor.oracle.base import Relaxation
from butfor.oracle.soft_edges import soft_edges
from butfor.predict.batch import EditedBatch
from butfor.predict.inputs import cloned
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.predict.inputs import Inputs
    from butfor.predict.predictor import Predictor

__all__ = ["ModelRelaxation"]


class ModelRelaxation(Relaxation):
    """All neighbourhoods side by side, with all edges that there are or may be, their weights between 0 and 1."""

    def __init__(self, predictor: Predictor, asked: Sequence[Edits]) -> None:
        self._predictor = predictor
        self.pointers = np.concatenate([[0], np.cumsum([len(edits) for edits in asked])])
        nothing = pack([()])
        edited = EditedBatch.of([(edits, nothing) for edits in asked])
        ends, columns, edit_of, added = [], [], [], []
        changes: list[tuple[NDArray[Any], ...]] = []
        row = 0
        for edits, first in zip(asked, self.pointers, strict=False):
            near, new = edits.neighbourhood, edits.new_edit
            visible = edits.visible
            ends.append(edits.all_ends[:, visible] + row)
            columns.append(edits.all_columns[visible])
            # Edges that belong to no edit share one slot behind the weights, which always holds 1.
            own = np.where(edits.edit_of < 0, self.pointers[-1], edits.edit_of + first)
            edit_of.append(np.concatenate([own, new + first])[visible])
            added.append((np.arange(len(own) + len(new)) >= len(own))[visible])
            changes.append(edits.changes.softened(row, first))
            row += near.num_nodes
        self._inputs = predictor.call.inputs(
            replace(edited, edge_index=np.concatenate(ends, axis=1), columns=np.concatenate(columns))
        )
        device = predictor.graph.device
        self._edit_of = torch.from_numpy(np.concatenate(edit_of)).to(device)
        self._added = torch.from_numpy(np.concatenate(added)).to(device)
        self._changes = [torch.from_numpy(np.concatenate(part)).to(device) for part in zip(*changes, strict=True)]

    def logits(self, weights: Tensor, degrees: Tensor | None = None) -> Tensor:
        """Run the model once on all targets."""
        inputs, model = self._changed(weights), self._predictor.model
        counted = None if degrees is None else self._columns(degrees)
        with preserved(model), soft_edges(model, inputs.edge_index, self._columns(weights), counted):
            return self._predictor.run(inputs)

    def _columns(self, weights: Tensor) -> Tensor:
        columns = torch.cat([weights, weights.new_ones(1)])[self._edit_of]
        return torch.where(self._added, Additions.soft_weight(columns), columns)

    def _changed(self, weights: Tensor) -> Inputs:
        inputs = cloned(self._inputs)
        row, feature, difference, edit = self._changes
        if not len(edit):
            return inputs
        step = (1 - weights[edit]) * difference.to(weights)
        return replace(inputs, x=inputs.x.index_put((row, feature), step.to(inputs.x.dtype), accumulate=True))
