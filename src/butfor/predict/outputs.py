"""What a model returns: is it what can be explained, and if not, what should it be?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from butfor.errors import ModelError

if TYPE_CHECKING:
    from torch import nn

__all__ = [
    "Sigmoids",
    "are_probabilities",
    "check_classes",
    "check_kind",
    "check_numbers",
    "check_shape",
    "precision_of",
]

_SIGMOIDS = {torch.sigmoid, torch.sigmoid_, Tensor.sigmoid, Tensor.sigmoid_, torch.special.expit}


def check_kind(out: Tensor, name: str) -> None:
    """Refuse what are no floating numbers."""
    odd = {"nested": out.is_nested, "on the meta device": out.is_meta, "quantized": out.is_quantized}
    odd["sparse"] = not out.is_nested and out.layout != torch.strided
    for what, holds in odd.items():
        if holds:
            raise ModelError(f"{name} returns a tensor that is {what}; let forward return plain numbers")
    if out.is_floating_point() and out.numel():
        return
    if not out.numel():
        raise ModelError(f"{name} returns an empty tensor of shape {tuple(out.shape)}; scores of classes are needed")
    what = "classes instead of their scores? Leave out its argmax" if not out.is_complex() else "complex numbers"
    raise ModelError(f"{name} returns a tensor of dtype {out.dtype}, but scores must be floating numbers ({what})")


def check_shape(out: Tensor, rows: int, what: str, name: str, threshold: float | None) -> None:
    """Refuse anything but a row of scores, or one number and a threshold, for each of these rows."""
    single = out.dim() <= 1 or (out.dim() == 2 and out.size(1) == 1)
    fits = out.numel() == rows if single else out.dim() == 2 and out.size(0) == rows
    if not fits:
        raise ModelError(
            f"{name} returns a tensor of shape {tuple(out.shape)}; one row of at least two class "
            f"scores for {what} is needed, or one number and a threshold"
        )
    if single and threshold is None:
        raise ModelError(
            f"{name} returns one number for {what}; say where another answer begins: Goal(threshold=0.5) for "
            "probabilities, Goal(threshold=0.0) for raw scores of yes or no, any value for a regression"
        )
    if not single and threshold is not None:
        raise ModelError(
            f"{name} returns {out.size(1)} scores for {what}; a threshold is for a model that returns one number"
        )


def check_numbers(out: Tensor, name: str) -> None:
    """Refuse scores that predict nothing."""
    # A score of -inf is a class that cannot be; but one of them must be, and a number for a threshold must be one.
    rows = out.reshape(-1, 1) if out.dim() < 2 else out
    if not bool(rows.amax(dim=1).isfinite().all()):  # NaN is larger than everything
        raise ModelError(f"{name} returns NaN or infinite scores on this graph; check its weights")


def check_classes(out: Tensor, sigmoids: Sigmoids, labels: object, name: str) -> None:
    """Refuse numbers of which each says whether a label is true: several may be, so they are no classes.

    They are known by the sigmoid that they come out of, or by true labels of which several are 1.

    Raises:
        ModelError: saying what to do instead.
    """
    several = False
    if isinstance(labels, Tensor) and labels.dim() == 2 and labels.shape[1:] == out.shape[1:]:
        several = bool(((labels == 0) | (labels == 1)).all() and (labels.sum(1) > 1).any())
    if several or sigmoids.made(out):
        raise ModelError(
            f"{name} seems to say of each of {out.size(1)} labels whether it is true, not which one of them is: let "
            "forward return one of these numbers, and give Goal(threshold=0.5), or 0 for raw scores; if they are "
            "scores of classes all the same, pass probabilities=False"
        )


class Sigmoids(TorchFunctionMode):
    """Notices whether the last thing that a model does is a sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self._last: Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and keep what a sigmoid returns."""
        result = func(*args, **(kwargs or {}))
        if func in _SIGMOIDS:
            self._last = result
        return result

    def made(self, out: Tensor) -> bool:
        """Whether these scores came out of a sigmoid."""
        last = self._last
        return last is not None and last.numel() == out.numel() and torch.equal(last.reshape(out.shape), out)


def are_probabilities(out: Tensor, claimed: bool | None, name: str) -> bool:
    """Whether scores are probabilities of classes.

    Raises:
        ModelError: they were said to be, and are not.
    """
    # In half precision a sum of many classes is off by more.
    room = max(1e-4, out.size(1) * torch.finfo(out.dtype).eps)
    sums = out.float().sum(-1)
    found = bool((out >= 0).all() and ((sums - 1).abs() <= room).all())
    if claimed and not found:
        raise ModelError(
            f"probabilities=True was given, but what {name} returns does not add up to 1 for each target (the first "
            f"sum is {float(sums[0]):g}); leave it out for scores of classes"
        )
    return found if claimed is None else claimed


def precision_of(model: nn.Module, out: Tensor) -> float:
    """How far two neighbouring numbers near 1 are apart in the coarsest type that a model computes with."""
    kinds = {tensor.dtype for tensor in (*model.parameters(), *model.buffers(), out) if tensor.is_floating_point()}
    return max(torch.finfo(kind).eps for kind in kinds)
