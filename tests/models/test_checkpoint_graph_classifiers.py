"""Checkpoints of classifiers of whole graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.errors import ModelError
from butfor.models import GraphClassifier, fingerprint, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("conv", "readout"), [("gcn", "sum"), ("gin", "max")])
def test_a_classifier_comes_back_as_it_was(tmp_path: Path, conv: str, readout: str) -> None:
    model = GraphClassifier(3, 4, hidden=6, layers=2, conv=conv, readout=readout)
    save_checkpoint(tmp_path / "run", model, data_info={})
    again, info = load_checkpoint(tmp_path / "run")
    assert isinstance(again, GraphClassifier)
    assert fingerprint(again) == fingerprint(model)
    assert not again.training
    assert (info["arguments"]["conv"], info["arguments"]["readout"]) == (conv, readout)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"conv": "gcn"', '"conv": 3', "says conv is 3, which is no name"),
        ('"conv": "gcn"', '"conv": "gat"', "describes no model: conv is 'gat'"),
        ('"layers": 2', '"layers": 9000000', "says layers is 9000000, which is no size"),
    ],
)
def test_a_description_that_no_classifier_can_have(tmp_path: Path, old: str, new: str, message: str) -> None:
    save_checkpoint(tmp_path / "run", GraphClassifier(3, 4, hidden=6, layers=2, conv="gcn"), data_info={})
    path = tmp_path / "run" / "model.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ModelError, match=message):
        load_checkpoint(tmp_path / "run")
