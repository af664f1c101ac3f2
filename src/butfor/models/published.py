"""The weights that the paper's authors published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.boundary.reading import reading
from butfor.datasets.npz import read_arrays
from butfor.errors import ModelError
from butfor.models.gcn import PaperGCN
from butfor.models.weights import fit_weights

if TYPE_CHECKING:
    import os

__all__ = ["load_published"]

_LAYERS = ("gc1", "gc2", "gc3")


def load_published(path: str | os.PathLike[str]) -> PaperGCN:
    """Return the published GCN of an `.npz` state dict, in evaluation mode; sizes follow from the weights.

    Its layers compute X·W, PyG's compute X·Wᵀ: `gc1.weight` (in × out) becomes `gc1.lin.weight` (out × in).

    Args:
        path: the file, with the arrays `gc1.weight`, `gc1.bias` and so on to `lin.bias`.

    Raises:
        ModelError: if the file is missing, damaged, or not such a state dict.

    Examples:
        >>> import numpy as np
        >>> import butfor
        >>> model, data = butfor.example()
        >>> arrays = {}
        >>> for name, weight in model.state_dict().items():
        ...     if name.endswith(".lin.weight"):  # their layers hold the transpose
        ...         name, weight = name.replace(".lin.", "."), weight.T
        ...     arrays[name] = weight.numpy()
        >>> np.savez("gcn3.npz", **arrays)
        >>> published = butfor.models.load_published("gcn3.npz")
        >>> butfor.models.fingerprint(published) == butfor.models.fingerprint(model)
        True
    """
    path = Path(path)
    with reading(path, ModelError):
        there = path.is_file()
    if not there:
        raise ModelError(f"there is no file {path}")
    arrays = read_arrays(path, ModelError)
    first, last = arrays.get("gc1.weight"), arrays.get("lin.weight")
    if first is None or last is None or first.ndim != 2 or last.ndim != 2:
        raise ModelError(
            f"{path} holds no published GCN: it needs matrices gc1.weight and lin.weight, "
            f"but has {', '.join(sorted(arrays)) or 'nothing'}"
        )
    weights = {}
    for name, array in arrays.items():
        layer, _, kind = name.partition(".")
        transposed = layer in _LAYERS and kind == "weight"
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise ModelError(f"{name} in {path} is of dtype {array.dtype}, but weights must be floating")
        array = array.T if transposed else array
        values = torch.from_numpy(np.array(array, array.dtype.newbyteorder("="), order="C"))
        weights[f"{layer}.lin.weight" if transposed else name] = values
    if not (all(first.shape) and all(last.shape)):
        raise ModelError(f"{path} holds no published GCN: gc1.weight or lin.weight is empty")
    with torch.device("meta"):
        model = PaperGCN(first.shape[0], last.shape[0], hidden=first.shape[1])
    fit_weights(model, weights, str(path))
    return model.eval()
