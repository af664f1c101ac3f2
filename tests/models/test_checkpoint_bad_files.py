"""Checkpoints that are damaged, of another program, or say what cannot be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bad_files import LARGE, NOT_JSON, check_refused, make_no_file
from butfor.errors import ModelError
from butfor.models import PaperGCN, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    save_checkpoint(folder, PaperGCN(2, 2, hidden=3), data_info={"name": "tree-cycles", "seed": 0, "sha256": "a"})
    load_checkpoint(folder)
    return folder


BAD_INFO: dict[str, dict[str, Any]] = {
    "schema true": {"schema": True},
    "schema 1.0": {"schema": 1.0},
    "schema list": {"schema": [1]},
    "schema large": {"schema": LARGE},
    "architecture list": {"architecture": ["PaperGCN"]},
    "architecture object": {"architecture": {"a": 1}},
    "architecture null": {"architecture": None},
    "arguments null": {"arguments": None},
    "arguments list": {"arguments": [1, 2, 3]},
    "argument true": {"arguments": {"in_channels": True, "num_classes": 2, "hidden": 3}},
    "argument large": {"arguments": {"in_channels": LARGE, "num_classes": 2, "hidden": 3}},
    "argument fraction": {"arguments": {"in_channels": 2.0, "num_classes": 2, "hidden": 3}},
    "argument list": {"arguments": {"in_channels": [2], "num_classes": 2, "hidden": 3}},
    "conv list": {
        "architecture": "GraphClassifier",
        "arguments": {"num_features": 2, "num_classes": 2, "hidden": 3, "layers": 2, "conv": ["gin"], "readout": "max"},
    },
    "conv unknown": {
        "architecture": "GraphClassifier",
        "arguments": {"num_features": 2, "num_classes": 2, "hidden": 3, "layers": 2, "conv": "os", "readout": "max"},
    },
    "checksum number": {"weights_sha256": 1},
    "checksum null": {"weights_sha256": None},
    "checksum other": {"weights_sha256": "abc"},
    "data list": {"data": [1]},
    "data null": {"data": None},
    "data text": {"data": "tree-cycles"},
    "path number": {"data": {"path": 3}},
    "path list": {"data": {"path": ["a"]}},
    "name number": {"data": {"name": 3}},
    "seed text": {"data": {"name": "tree-cycles", "seed": "0"}},
    "seed negative": {"data": {"name": "tree-cycles", "seed": -1}},
    "seed large": {"data": {"name": "tree-cycles", "seed": LARGE}},
    "seed fraction": {"data": {"name": "tree-cycles", "seed": 0.5}},
    "undirected text": {"data": {"path": "a", "undirected": "no"}},
    "node_table number": {"data": {"path": "a", "node_table": 3}},
    "fingerprint number": {"data": {"path": "a", "sha256": 3}},
    "half a letter": {"data": {"path": "\ud800"}},
    "training list": {"training": [1]},
    "training text": {"training": "yes"},
    "test number": {"training": {"test": 3}},
    "test text": {"training": {"test": "abc"}},
    "test of fractions": {"training": {"test": [0.5]}},
    "test negative": {"training": {"test": [-1]}},
    "test true": {"training": {"test": [True]}},
    "test large": {"training": {"test": [LARGE]}},
    "versions list": {"versions": [1]},
}


@pytest.mark.parametrize("case", BAD_INFO)
def test_descriptions_that_cannot_be_used(checkpoint: Path, case: str) -> None:
    path = checkpoint / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **BAD_INFO[case]}))
    check_refused(lambda: load_checkpoint(checkpoint), ModelError, checkpoint, "model.")


@pytest.mark.parametrize("case", NOT_JSON)
def test_a_description_that_is_no_json_object(checkpoint: Path, case: str) -> None:
    (checkpoint / "model.json").write_bytes(NOT_JSON[case])
    check_refused(lambda: load_checkpoint(checkpoint), ModelError, checkpoint, "model.json")


@pytest.mark.parametrize("kind", ["pipe", "endless", "larger than memory", "folder"])
def test_a_description_that_is_no_file(tmp_path: Path, kind: str) -> None:
    make_no_file(tmp_path / "model.json", kind)
    check_refused(lambda: load_checkpoint(tmp_path), ModelError, tmp_path, "model.json")
