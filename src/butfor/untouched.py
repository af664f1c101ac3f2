"""Leave the user's model exactly as it was found."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

__all__ = ["untouched"]


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Run the model in evaluation mode, its parameters frozen, without layer caches; then put all back.

    A layer such as ``GCNConv(cached=True)`` would answer for the old graph after a deletion, and PyG's
    explainers would leave gradients on the parameters.
    """
    training = {module: module.training for module in model.modules()}
    trainable = {parameter: parameter.requires_grad for parameter in model.parameters()}
    cached: dict[nn.Module, dict[str, Any]] = {}
    try:
        for parameter in trainable:
            parameter.requires_grad = False
        for module in model.modules():
            module.training = False
            if vars(module).get("cached") is True:
                names = [name for name in vars(module) if name == "cached" or name.startswith("_cached")]
                cached[module] = {name: vars(module)[name] for name in names}
                for name in names:
                    setattr(module, name, False if name == "cached" else None)
        yield
    finally:
        for parameter, mode in trainable.items():
            parameter.requires_grad = mode
        for module, mode in training.items():
            module.training = mode
        for module, values in cached.items():
            for name, value in values.items():
                setattr(module, name, value)
