"""Leave the user's model exactly as it was found, also where several threads use it."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from torch import nn

__all__ = ["MODEL_LOCK", "preserved"]

# Held while a model runs or is looked at. One for all models, not one each: models may share layers, soft edges
# exchange functions of PyG's modules, and some of PyG draws from torch's global random numbers.
MODEL_LOCK = threading.RLock()


@contextmanager
def preserved(model: nn.Module) -> Iterator[None]:
    """Run the model in evaluation mode, its parameters frozen, without layer caches; then put all back.

    A layer such as ``GCNConv(cached=True)`` would answer for the old graph after a deletion, and PyG's
    explainers would leave gradients on the parameters. Meanwhile no other thread runs a model through here.
    """
    with MODEL_LOCK, _uncompiled():
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


def _uncompiled() -> AbstractContextManager[None]:
    """Run what ``torch.compile`` made as it was written: compiling it anew for every edited graph takes minutes."""
    set_stance = getattr(torch.compiler, "set_stance", None)  # from torch 2.6 on
    if set_stance is None or "torch._dynamo" not in sys.modules:
        return nullcontext()  # nothing can have been compiled
    stance: AbstractContextManager[None] = set_stance("force_eager")
    return stance
