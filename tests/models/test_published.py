"""The weights that the authors published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from butfor.datasets import load_graph
from butfor.errors import ModelError
from butfor.models import load_published

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.published
@pytest.mark.parametrize(
    ("name", "counts"),
    [("ba_shapes", [62, 30, 30, 18]), ("tree_cycles", [94, 80]), ("tree_grid", [95, 148])],
)
def test_the_published_models_predict_as_published(reference: Path, name: str, counts: list[int]) -> None:
    model = load_published(reference / f"{name}_gcn_weights.npz")
    data = load_graph(reference / f"{name}_graph.npz")
    assert not model.training
    predicted = model(data.x, data.edge_index).argmax(dim=1)
    assert torch.bincount(predicted[data.test_mask]).tolist() == counts
    if name == "ba_shapes":
        assert round((predicted == data.y)[data.test_mask].double().mean().item(), 3) == 0.986
        assert int(data.train_mask.sum()) == 560


def published_arrays(hidden: int = 20) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"gc1.weight": (10, hidden), "gc2.weight": (hidden, hidden), "gc3.weight": (hidden, hidden)}
    shapes |= {f"gc{i}.bias": (hidden,) for i in (1, 2, 3)}
    shapes |= {"lin.weight": (2, 3 * hidden), "lin.bias": (2,)}
    return {name: rng.random(shape, dtype=np.float32) for name, shape in shapes.items()}


def test_matrices_are_turned(tmp_path: Path) -> None:
    arrays = published_arrays(hidden=8)
    np.savez(tmp_path / "w.npz", **arrays)
    model = load_published(tmp_path / "w.npz")
    assert (model.in_channels, model.num_classes, model.hidden) == (10, 2, 8)
    assert np.array_equal(model.gc2.lin.weight.detach().numpy(), arrays["gc2.weight"].T)
    assert np.array_equal(model.lin.weight.detach().numpy(), arrays["lin.weight"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gc1.weight": None}, "holds no published GCN: it needs matrices gc1.weight"),
        ({"gc3.bias": None}, r"has no gc3\.bias, which PaperGCN needs"),
        (
            {"gc2.weight": np.ones((20, 21), np.float32)},
            r"gc2\.lin\.weight .* \(21, 20\), but PaperGCN needs \(20, 20\)",
        ),
        ({"gc2.bias": np.full(20, np.nan, np.float32)}, r"gc2\.bias .* 20 values that are not finite"),
        ({"gc2.bias": np.ones(20, int)}, r"gc2\.bias in .* is of dtype int64"),
        ({"gc2.bias": np.array([None] * 20)}, "holds pickled Python objects"),
    ],
)
def test_weights_of_another_model_are_refused(tmp_path: Path, changes: dict[str, np.ndarray], message: str) -> None:
    arrays = {name: array for name, array in {**published_arrays(), **changes}.items() if array is not None}
    np.savez(tmp_path / "w.npz", **arrays)
    with pytest.raises(ModelError, match=message):
        load_published(tmp_path / "w.npz")


def test_files_that_are_missing_or_damaged_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no file .*none\.npz"):
        load_published(tmp_path / "none.npz")
    (tmp_path / "w.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelError, match=r"cannot be read as \.npz"):
        load_published(tmp_path / "w.npz")
