"""The model after edits, run where it counts: the truth that a search is compared with, and results are verified on.

That is the whole graph or, where it is too large to be run, the receptive field of each target: everything whose
messages can reach it, extracted afresh from the graph for every run.
"""

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

__all__ = ["logits_after", "logits_after_all"]


def logits_after(predictor: Predictor, edits: Edits, chosen: EditSet) -> Tensor:
    """The target's logits after these edits."""
    return logits_after_all(predictor, [(edits, chosen)])[0]


def logits_after_all(predictor: Predictor, made: Sequence[tuple[Edits, EditSet]]) -> Tensor:
    """One row of logits for each target, after the edits of all of them on the whole graph, or of each on its own."""
    if predictor.scope == "receptive-field":
        return torch.cat([_answers(predictor, [one]) for one in made])
    return _answers(predictor, made)


def _answers(predictor: Predictor, made: Sequence[tuple[Edits, EditSet]]) -> Tensor:
    targets = [edits.neighbourhood.targets for edits, _ in made]
    with preserved(predictor.model), torch.no_grad():
        try:
            return predictor(_edited(predictor, targets, made))
        except ModelError:
            # If the model works on the intact graph it cannot cope with the edits, and predicts nothing.
            predictor(_edited(predictor, targets))
            return torch.full_like(predictor.logits[:1], torch.nan).expand(len(targets), -1)


def _edited(
    predictor: Predictor, targets: Sequence[tuple[int, ...]], made: Sequence[tuple[Edits, EditSet]] = ()
) -> EditedBatch:
    if predictor.scope == "whole-graph":
        return EditedBatch.whole_graph(predictor.graph, targets, made)
    (target,) = targets
    joins = made[0][0].joined(made[0][1]) if made else ()
    return EditedBatch.receptive_field(predictor.field(target, joins), made)
