"""Files of weights that are damaged, of another kind, or of no use to the model."""

from __future__ import annotations

import json
import pickle
import struct
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import save_file

from bad_files import check_refused, make_no_file, pt
from butfor.errors import ModelError
from butfor.models import PaperGCN, load_checkpoint, load_weights, save_checkpoint

if TYPE_CHECKING:
    from pathlib import Path


def safetensors(header: object, content: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


WEIGHTS: dict[str, bytes] = {
    "empty": b"",
    "giant header": struct.pack("<Q", 2**60) + b"{}",
    "short": safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}),
    "giant shape": safetensors({"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4]}}, bytes(4)),
    "shape beyond 64 bits": safetensors({"a": {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 4]}}),
    "unknown dtype": safetensors({"a": {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "negative shape": safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)),
    "list": safetensors([1, 2]),
    "other tensors": safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "pickle": pickle.dumps({"a": 1}),
    "zip": pt({"a": torch.ones(2)}),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_damaged_weights(tmp_path: Path, case: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(WEIGHTS[case])
    check_refused(lambda: load_weights(PaperGCN(2, 2, hidden=3), path), ModelError, tmp_path, "model.safetensors")
    folder = tmp_path / "run"
    save_checkpoint(folder, PaperGCN(2, 2, hidden=3), data_info={"name": "tree-cycles", "seed": 0, "sha256": "a"})
    (folder / "model.safetensors").write_bytes(WEIGHTS[case])
    check_refused(lambda: load_checkpoint(folder), ModelError, tmp_path, "model.safetensors")


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float8_e4m3fn, torch.complex64, torch.uint8])
def test_weights_of_odd_kinds(tmp_path: Path, dtype: torch.dtype) -> None:
    model = PaperGCN(2, 2, hidden=3)
    state = {name: tensor.detach().abs().to(dtype) for name, tensor in model.state_dict().items()}
    save_file(state, tmp_path / "w.safetensors")
    check_refused(lambda: load_weights(model, tmp_path / "w.safetensors"), ModelError, tmp_path, f"is of dtype {dtype}")


@pytest.mark.parametrize("kind", ["pipe", "endless", "larger than memory", "folder"])
def test_weights_that_are_no_file(tmp_path: Path, kind: str) -> None:
    make_no_file(tmp_path / "w.safetensors", kind)
    check_refused(
        lambda: load_weights(PaperGCN(2, 2), tmp_path / "w.safetensors"), ModelError, tmp_path, "w.safetensors"
    )
