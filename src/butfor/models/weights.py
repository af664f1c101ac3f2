"""Reading and writing the weights of a model. Weights that do not fit are refused before anything is changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load as from_bytes
from torch import Tensor, nn

from butfor.boundary.reading import read_bytes, reading
from butfor.errors import ModelError
from butfor.graph.fingerprint import model_tensors

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["fit_weights", "load_weights", "state_of"]


# Dtypes of the same kind, which can be converted into one another.
_FLOATS = {torch.float64, torch.float32, torch.float16, torch.bfloat16}
_INTEGERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}


def load_weights(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Load a `.safetensors` file into the user's own model; after an error the model is unchanged.

    Args:
        model: a model of the same shape as the one whose ``state_dict`` was saved.
        path: the file.

    Raises:
        ModelError: if the file is missing, truncated, not safetensors (a pickle is never opened), or its
            tensors do not fit the model.

    Examples:
        >>> from safetensors.torch import save_file
        >>> import butfor
        >>> model, data = butfor.example()
        >>> save_file(model.state_dict(), "weights.safetensors")
        >>> mine = butfor.models.PaperGCN(in_channels=10, num_classes=2)
        >>> butfor.models.load_weights(mine, "weights.safetensors")
        >>> butfor.models.fingerprint(mine) == butfor.models.fingerprint(model)
        True
    """
    path = Path(path)
    content = read_bytes(path, ModelError)
    try:
        with reading(path, ModelError):
            weights = from_bytes(content)
    except ModelError as problem:
        # torch.save writes a zip archive or, formerly, a bare pickle; numpy's .npz is a zip archive as well. This is
        # checked only now, because safetensors begin with a length, which may be any bytes.
        if content.startswith((b"PK", b"\x80")):
            raise ModelError(
                f"{path} is not safetensors but a pickle or zip, which could run code and is not opened; "
                "convert: safetensors.torch.save_file(torch.load(path, weights_only=True), 'weights.safetensors')"
            ) from problem
        said = " ".join(str(problem.__cause__).split())[:300]
        raise ModelError(f"{path} is truncated or not safetensors: {said}") from problem
    fit_weights(model, weights, str(path))


def fit_weights(model: nn.Module, weights: Mapping[str, Tensor], origin: str) -> None:
    """Copy the named tensors into the model if, and only if, all of them fit.

    A model that was built on the "meta" device, without memory and without random numbers, gets its memory here.

    Raises:
        ModelError: a tensor is missing, unknown, of another shape or not finite; the message names the first one.
    """
    expected = model_tensors(model)
    kind = type(model).__name__
    if missing := sorted(expected.keys() - weights.keys()):
        raise ModelError(f"{origin} has no {missing[0]}, which {kind} needs; it has {_list(weights)}")
    if unknown := sorted(weights.keys() - expected.keys()):
        raise ModelError(f"{origin} has a tensor {unknown[0]}, which {kind} does not know; it knows {_list(expected)}")
    for name, want in expected.items():  # in the model's order, because a file has none
        tensor = weights[name]
        if tensor.shape != want.shape:
            raise ModelError(
                f"{name} in {origin} has shape {tuple(tensor.shape)}, but {kind} needs {tuple(want.shape)}: "
                "are these the weights of another model or graph?"
            )
        if tensor.dtype != want.dtype and not any({tensor.dtype, want.dtype} <= kind for kind in (_FLOATS, _INTEGERS)):
            raise ModelError(f"{name} in {origin} is of dtype {tensor.dtype}, but {kind} needs {want.dtype}")
        _check_finite(name, tensor, origin)
    if any(tensor.is_meta for tensor in expected.values()):
        model.to_empty(device="cpu")
    model.load_state_dict(dict(weights))


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's weights as separate tensors in main memory, ready to be written.

    Raises:
        ModelError: if a layer has no size yet or a weight is not finite.
    """
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model_tensors(model).items()}
    for name, tensor in state.items():
        _check_finite(name, tensor, type(model).__name__)
    return state


def _check_finite(name: str, tensor: Tensor, origin: str) -> None:
    if not tensor.is_floating_point():
        return
    finite = torch.isfinite(
        tensor if tensor.dtype in _FLOATS else tensor.float()
    )  # torch cannot check 8-bit floats themselves
    if not bool(finite.all()):
        raise ModelError(f"{name} in {origin} has {int((~finite).sum())} values that are not finite")


def _list(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "nothing"
