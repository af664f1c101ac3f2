"""The model on the whole graph after edits: the truth that a search is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from butfor.errors import ModelError
from butfor.predict.batch import EditedBatch
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from butfor.edits.edits import Edits, EditSet
    from butfor.predict.predictor import Predictor

__all__ = ["logits_after", "run_whole_graph"]


def logits_after(predictor: Predictor, edits: Edits, chosen: EditSet) -> Tensor:
    """The target's logits on the whole graph after these edits."""
    return run_whole_graph(predictor, [(edits, chosen)])[0]


def run_whole_graph(predictor: Predictor, made: Sequence[tuple[Edits, EditSet]]) -> Tensor:
    """One row of logits for each target, on the whole graph after the edits of all of them."""
    targets = [edits.neighbourhood.targets for edits, _ in made]
    with preserved(predictor.model), torch.no_grad():
        try:
            return predictor(EditedBatch.whole_graph(predictor.graph, targets, made))
        except ModelError:
            # If the model works on the intact graph it cannot cope with the edits, and predicts nothing.
            predictor(EditedBatch.whole_graph(predictor.graph, targets))
            return torch.full_like(predictor.logits[:1], torch.nan).expand(len(targets), -1)
