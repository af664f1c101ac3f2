"""What a result says, held against brute force (`truth`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch

from butfor.edits.addition import Addition
from butfor.edits.change import Change
from butfor.edits.deletion import Deletion
from butfor.result.counterfactual import Counterfactual
from butfor.result.status import Status
from truth import CLOSE

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from butfor.methods import Exact
    from butfor.result.counterfactual import Prediction
    from truth import Question, Truth


def check_claims(question: Question, truth: Truth, result: Counterfactual) -> None:
    """All that a result says is so, whoever found it; cost and bound only where the answer is not too close to call."""
    told = f"{question.name}, {truth.target}: {result}"
    target = 0 if truth.target is None else truth.target
    assert (result.target, result.task, result.node_type) == (target, question.task, question.node_type), told
    assert question.directed is None or result.directed == question.directed, told
    scores = question.scores[:, list(question.targets).index(truth.target)]
    assert result.before.label == truth.before, told
    _check_prediction(question, result.before, scores[0], told)
    if truth.tenths is None:
        assert truth.doubtful or not result.found, told
    elif not truth.doubtful:
        assert result.status is not Status.IMPOSSIBLE, told
        assert result.lower_bound <= truth.cost + 1e-9, told
    assert Counterfactual.from_dict(json.loads(json.dumps(result.to_dict()))) == result, told
    if not result.found:
        assert (result.edits, result.cost, result.size, result.after) == ((), 0.0, None, None), told
        return
    row, judged = question.row(result.edits), question.judged(truth.target)
    assert result.edits == question.records(row), told
    assert question.allowed(truth.target)[row], told
    assert judged.reached[row] or judged.unsure[row], told
    assert question.goal.wanted is not None or result.after.label != result.before.label, told
    _check_prediction(question, result.after, scores[row], told)
    assert result.cost == pytest.approx(question.tenths[row] / 10), told
    if not truth.doubtful:
        assert question.tenths[row] >= truth.tenths, told
        assert result.status is not Status.OPTIMAL or question.tenths[row] == truth.tenths, told
    _check_words(result)


def check_proved(question: Question, truths: Iterable[Truth], method: Exact) -> list[Counterfactual]:
    """The method finds and proves the very sets that brute force finds, or that there are none: its results."""
    truths = list(truths)
    results = question.ask([truth.target for truth in truths], method)
    check_proofs(question, truths, results)
    return results


def check_proofs(question: Question, truths: Iterable[Truth], results: Iterable[Counterfactual]) -> None:
    """Each result has all the sets that brute force finds, and a proof that none is cheaper or that there are none."""
    for truth, result in zip(truths, results, strict=True):
        told = f"{question.name}, {truth.target}: {result}"
        check_claims(question, truth, result)
        if truth.tenths is None:
            assert result.status is Status.IMPOSSIBLE, told
            assert (result.lower_bound, result.alternatives, result.necessity) == (None, (), None), told
            continue
        assert result.status is Status.OPTIMAL, told
        assert result.lower_bound == pytest.approx(truth.cost), told
        sets = [result.edits, *result.alternatives]
        assert len(set(sets)) == len(sets), f"the same set twice, {told}"
        assert set(sets) == set(truth.lead), told
        assert dict(result.necessity) == pytest.approx(truth.necessity), told
        assert truth.lead[result.edits] >= max(truth.lead.values()) - CLOSE, f"not the most decisive, {told}"


def _check_prediction(question: Question, prediction: Prediction, scores: np.ndarray, told: str) -> None:
    threshold = question.goal.threshold
    if threshold is not None:
        assert prediction.label == int(scores[0] > threshold), told
        assert prediction.value == pytest.approx(scores[0], abs=1e-4), told
        assert prediction.probability is None
    else:
        assert prediction.label == int(scores.argmax()), told
        assert prediction.probability == pytest.approx(float(torch.from_numpy(scores).softmax(0).max()), abs=1e-4), told
        assert prediction.value is None


def _check_words(result: Counterfactual) -> None:
    """Edges and features by kind, and all of them in the sentence."""
    kinds = (Deletion, Addition, Change)
    deleted, added, changed = ([edit for edit in result.edits if isinstance(edit, kind)] for kind in kinds)
    assert result.removed_edges == tuple((edit.source, edit.target) for edit in deleted)
    assert result.added_edges == tuple((edit.source, edit.target) for edit in added)
    assert result.changes == tuple(changed)
    assert result.size == len(deleted) + len(added) + len(changed)
    arrow = "→" if result.directed else "–"
    for edit in (*deleted, *added):
        if edit.relation is not None:
            source, name, target = edit.relation
            assert f"{source} {edit.source} → {target} {edit.target} ({name})" in str(result)
        else:
            assert f"{edit.source}{arrow}{edit.target}" in str(result)
    for edit in changed:
        what = f"feature {edit.feature} of {edit.node_type or 'node'} {edit.node}"
        assert f"{what} at {edit.after:g} instead of {edit.before:g}" in str(result)
