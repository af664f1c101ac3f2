"""The example that comes with the package."""

from __future__ import annotations

import pytest

import butfor
from butfor.errors import ModelError
from butfor.models import example


def test_the_example_is_the_same_everywhere() -> None:
    model, data = butfor.example()
    assert not model.training
    assert butfor.models.fingerprint(model) == butfor.models.fingerprint(butfor.example()[0])
    result = butfor.explain(model, data, 605)
    assert str(result) == (
        "Node 605 is predicted 'motif' (0.93). But for these 2 of its 11 edges it would be 'base' (0.83): "
        "602–603, 605–606."
    )
    assert result.status is butfor.Status.OPTIMAL


def test_another_graph_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = butfor.datasets.tree_cycles
    monkeypatch.setattr("butfor.models.example_model.tree_cycles", lambda seed: other(seed=seed + 1))
    with pytest.raises(ModelError, match="not the one that its model was trained on"):
        example()
