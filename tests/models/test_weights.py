"""Weights of one's own model: read from safetensors, never from a pickle, and only if they fit."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch_geometric.nn import GCNConv

from bad_files import bomb
from butfor.errors import ModelError
from butfor.models import fingerprint, load_weights

if TYPE_CHECKING:
    from pathlib import Path


class Own(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.conv = GCNConv(10, width)
        self.norm = nn.BatchNorm1d(width)


def test_weights_come_back_as_they_were(tmp_path: Path) -> None:
    one, other = Own().train(), Own()
    save_file(one.state_dict(), tmp_path / "w.safetensors")
    load_weights(other, tmp_path / "w.safetensors")
    assert fingerprint(one) == fingerprint(other)
    assert other.training  # as it was found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"conv.bias": None}, r"has no conv\.bias, which Own needs; it has conv\.lin\.weight, norm"),
        ({"head": torch.ones(1)}, "has a tensor head, which Own does not know"),
        ({"conv.lin.weight": torch.ones(4, 11)}, r"conv\.lin\.weight .* \(4, 11\), but Own needs \(4, 10\)"),
        (
            {"conv.bias": torch.tensor([1, torch.nan, torch.inf, 0])},
            r"conv\.bias .* 2 values that are not finite",
        ),
        ({"conv.bias": torch.ones(4, dtype=torch.long)}, r"conv\.bias .* is of dtype torch\.int64"),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_change_nothing(
    tmp_path: Path, changes: dict[str, torch.Tensor], message: str
) -> None:
    model = Own()
    before = fingerprint(model)
    weights = {name: tensor for name, tensor in {**model.state_dict(), **changes}.items() if tensor is not None}
    save_file(weights, tmp_path / "w.safetensors")
    with pytest.raises(ModelError, match=message):
        load_weights(model, tmp_path / "w.safetensors")
    assert fingerprint(model) == before


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    torch.save(Own().state_dict(), tmp_path / "w.pt")
    torch.save(bomb(tmp_path / "ran"), tmp_path / "bomb.safetensors")
    (tmp_path / "old.safetensors").write_bytes(pickle.dumps(bomb(tmp_path / "ran")))
    for name in ("w.pt", "bomb.safetensors", "old.safetensors"):
        with pytest.raises(ModelError, match=r"not safetensors but a pickle or zip.*save_file\(torch\.load"):
            load_weights(Own(), tmp_path / name)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(ModelError, match=r"cannot read .*none: No such file"):
        load_weights(Own(), tmp_path / "none")
    (tmp_path / "text").write_text("these are no weights at all")
    with pytest.raises(ModelError, match="is truncated or not safetensors"):
        load_weights(Own(), tmp_path / "text")
