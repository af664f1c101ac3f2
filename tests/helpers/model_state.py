"""Everything about a model that somebody could change, and whether it was changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch import nn


def state(model: nn.Module) -> dict[str, Any]:
    """Everything about a model that somebody could change, and what the whole process shares with it."""
    parts: dict[str, Any] = {}
    for name, module in model.named_modules():
        for key, value in vars(module).items():
            parts[f"{name}.{key}"] = dict(value) if isinstance(value, dict) else value
            parts[f"{name}.{key}, what it is"] = id(value)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        parts[f"{name}, a copy"] = (value.detach().clone(), value.requires_grad, value.grad)
    for space in [name for name in sys.modules if name.startswith("torch_geometric.")]:
        parts[space] = {key: id(value) for key, value in vars(sys.modules[space]).items() if callable(value)}
    parts["modes"] = (torch.is_grad_enabled(), torch._C._len_torch_function_stack(), torch.get_default_dtype())
    parts["random numbers"] = torch.get_rng_state()
    return parts


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is other or bool(one == other)


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of all parts that are not what they were."""
    return [name for name in before | after if not same(before.get(name, "none"), after.get(name, "none"))]
