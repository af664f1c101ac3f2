"""How sure a result is, in words; and what a model predicts."""

from __future__ import annotations

import pytest

from butfor.result.status import Prediction, Status


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_sentence_that_is_true_whatever_the_goal_and_the_costs(status: Status) -> None:
    assert status.sentence.endswith(".")
    assert str(status) == status.value
    assert not any(word in status.sentence for word in ("smaller", "change the prediction"))


@pytest.mark.parametrize(
    ("prediction", "told"),
    [
        (Prediction(1, "motif", 0.934), "'motif' (0.93)"),
        (Prediction(1, "above 2", None, 2.5), "'above 2' (2.50)"),
        (Prediction(0, "at most 0", None, -0.001), "'at most 0' (0.00)"),
        (Prediction(0, "base", None), "'base'"),
    ],
)
def test_predictions_in_words(prediction: Prediction, told: str) -> None:
    assert str(prediction) == told
