"""Checkpoints: a model comes back as it was, and what is damaged or foreign is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from butfor.datasets import describe, tree_cycles
from butfor.errors import ModelError
from butfor.models import PaperGCN, TrainingResult, fingerprint, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

RESULT = TrainingResult(0.9, 0.88, 0.3, epochs=1000, lr=0.001, weight_decay=0.001, clip=2.0, seed=0)


@pytest.fixture
def folder(tmp_path: Path, model: PaperGCN) -> Path:
    save_checkpoint(tmp_path / "a" / "run", model, data_info=describe(tree_cycles(0)), result=RESULT)
    return tmp_path / "a" / "run"


def change_info(folder: Path, **changes: object) -> None:
    info = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**info, **changes}))


def test_a_model_comes_back_as_it_was(folder: Path, model: PaperGCN) -> None:
    state = torch.get_rng_state()
    loaded, info = load_checkpoint(folder)
    assert torch.equal(torch.get_rng_state(), state)
    data = tree_cycles(0)
    assert fingerprint(loaded) == fingerprint(model)
    assert torch.equal(loaded(data.x, data.edge_index), model(data.x, data.edge_index))
    assert not loaded.training
    assert info["arguments"] == {"in_channels": 10, "num_classes": 2, "hidden": 20}
    assert info["data"]["name"] == "tree-cycles"
    assert info["data"]["sha256"] == describe(data)["sha256"]
    assert info["training"]["test_accuracy"] == 0.88
    assert {"butfor", "torch", "torch_geometric", "python"} <= info["versions"].keys()
    assert sorted(entry.name for entry in folder.iterdir()) == ["model.json", "model.safetensors"]


def test_a_checkpoint_is_written_over_whole(folder: Path) -> None:
    save_checkpoint(folder, PaperGCN(3, 5), data_info={"name": "other"})
    loaded, info = load_checkpoint(folder)
    assert (loaded.in_channels, loaded.num_classes, info["training"]) == (3, 5, None)


def test_what_cannot_be_saved_leaves_no_folder(tmp_path: Path, model: PaperGCN) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match=r"cannot write the checkpoint .*file"):
        save_checkpoint(tmp_path / "file", model, data_info={})
    with pytest.raises(ModelError, match="checkpoints hold PaperGCN, GraphClassifier, not Linear"):
        save_checkpoint(tmp_path / "run", nn.Linear(2, 2), data_info={})
    with pytest.raises(ModelError, match="must be plain JSON values"):
        save_checkpoint(tmp_path / "run", model, data_info={"data": object()})
    with torch.no_grad():
        model.gc2.bias[3] = torch.nan
    with pytest.raises(ModelError, match=r"gc2\.bias in PaperGCN has 1 values that are not finite"):
        save_checkpoint(tmp_path / "run", model, data_info={})
    assert not (tmp_path / "run").exists()


def test_missing_and_damaged_checkpoints_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none is no checkpoint: it has no model\.json"):
        load_checkpoint(tmp_path / "none")
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for size in (0, 4, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"model\.safetensors is truncated or not safetensors"):
            load_checkpoint(folder)
    weights.unlink()
    with pytest.raises(ModelError, match=r"cannot read .*model\.safetensors: No such file"):
        load_checkpoint(folder)
    text = (folder / "model.json").read_text()
    for content in (text[:40], "", "\x00"):
        (folder / "model.json").write_text(content)
        with pytest.raises(ModelError, match=r"model\.json cannot be read as JSON"):
            load_checkpoint(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 99}, "has schema 99, but this butfor reads 1"),
        ({"architecture": "os.system"}, "is of a 'os.system', but only PaperGCN, GraphClassifier can be rebuilt"),
        ({"arguments": {"in_channels": 10}}, "must give the arguments in_channels, num_classes, hidden"),
        ({"arguments": {"in_channels": 10, "num_classes": "2", "hidden": 20}}, "says num_classes is '2'"),
        (
            {"arguments": {"in_channels": 10, "num_classes": 3, "hidden": 20}},
            r"lin\.weight in .* has shape \(2, 60\), but PaperGCN needs \(3, 60\)",
        ),
        (
            {"arguments": {"in_channels": 10, "num_classes": 2, "hidden": 9_000_000}},
            r"gc1\.bias in .* has shape \(20,\), but PaperGCN needs \(9000000,\)",
        ),
        ({"weights_sha256": "0"}, "is not the file that model.json describes"),
    ],
)
def test_checkpoints_that_do_not_fit_are_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    change_info(folder, **changes)
    with pytest.raises(ModelError, match=message):
        load_checkpoint(folder)


def test_json_of_another_program_is_refused(folder: Path) -> None:
    for content in ("[]", "{}", '{"schema": 1}'):
        (folder / "model.json").write_text(content)
        with pytest.raises(ModelError, match="was not written by butfor"):
            load_checkpoint(folder)


def test_the_weights_are_plain_safetensors(folder: Path) -> None:
    assert "gc1.lin.weight" in load_file(folder / "model.safetensors")
