"""The model's scores as a smooth function of one weight per edit, and its derivatives, with and without autograd."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

import torch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    Floats = NDArray[np.floating[Any]]

__all__ = ["Relaxation"]


class Relaxation(ABC):
    """The model's scores for several targets as a smooth function of one weight per edit.

    Weight 1 leaves everything as it is and 0 makes the edit: an edge is gone, or there, or a feature has its
    new value. The weights of all targets lie in one vector; those of target ``i`` are ``pointers[i]`` to
    ``pointers[i + 1]``. Node degrees may be counted with other weights, in layers that normalise by degree.
    """

    pointers: NDArray[np.int64]

    @abstractmethod
    def scores(self, weights: Floats, degrees: Floats) -> Floats:
        """One row of scores for each target; ``degrees`` are the weights that degrees are counted with."""

    @abstractmethod
    def slopes(self, weights: Floats, degrees: Floats, of_scores: Floats, by_degrees: bool) -> tuple[Floats, Floats]:
        """The derivatives of a function of the scores with respect to the weights, and to those of degrees.

        ``of_scores`` are its derivatives with respect to the scores. Unless ``by_degrees``, nobody asks for the second.
        """

    def logits(self, weights: Tensor, degrees: Tensor | None = None) -> Tensor:
        """One row of scores for each target, differentiable in the weights.

        ``degrees``, where given, are the weights that degrees are counted with; otherwise degrees follow ``weights``.
        """
        return cast("Tensor", _Pass.apply(weights, weights if degrees is None else degrees, self))  # type: ignore[no-untyped-call]


class _Pass(torch.autograd.Function):
    """Joins a relaxation to autograd. The backward pass computes what it needs anew, which is cheap."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, degrees: Tensor, relaxation: Relaxation) -> Tensor:
        ctx.relaxation = relaxation
        ctx.save_for_backward(weights, degrees)
        scores = relaxation.scores(*(part.detach().cpu().numpy() for part in (weights, degrees)))
        return torch.from_numpy(scores).to(weights)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weights, degrees = ctx.saved_tensors
        w, d, of_scores = (part.detach().cpu().numpy() for part in (weights, degrees, grads[0]))
        by_degrees = bool(ctx.needs_input_grad[1])
        of_weights, of_degrees = ctx.relaxation.slopes(w, d, of_scores, by_degrees)
        second = torch.from_numpy(of_degrees).to(degrees) if by_degrees else None
        return torch.from_numpy(of_weights).to(weights), second, None
