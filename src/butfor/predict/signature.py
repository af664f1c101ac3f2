"""What a model's ``forward`` takes, and whether it can be called as a model of a graph is."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.nn.models.basic_gnn import BasicGNN

from butfor.errors import ModelError
from butfor.graph.fields import EDGE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

__all__ = ["accepted", "arguments", "check_model", "has_decoder", "is_required"]


def check_model(model: object) -> None:
    """Refuse what cannot be called as a model of a graph is.

    Raises:
        ModelError: saying what to write instead.
    """
    name = type(model).__name__
    if not isinstance(model, torch.nn.Module):
        what = f"the {name} {model.__name__}" if inspect.isroutine(model) else f"a {name}"
        raise ModelError(f"model is {what}; give a torch.nn.Module whose forward takes x and edge_index")
    try:
        list(model.modules())
    except AttributeError:
        raise ModelError(f"{name} is not set up: its __init__ must call super().__init__() first") from None
    if any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
        raise ModelError(f"{name} is on the meta device, where weights have no values; load them first")
    if _overrides_forward(model):
        parameters = _parameters(model.forward).values()
        places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        if parameters and len(places) < 2 and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
            taken = ", ".join(one.name for one in places)
            raise ModelError(
                f"{name}.forward takes ({taken}), but is called as forward(x, edge_index, ...); wrap it in a module "
                "whose forward(self, x, edge_index) calls it with Data(x=x, edge_index=edge_index)"
            )


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """What a function takes; nothing is known of one that was traced."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def arguments(function: Any, several_types: bool = False) -> set[str]:
    """The names of what a function takes; of one with ``**kwargs`` also all that we could give it.

    Not so where there are several types: HeteroConv and its like pass on to every layer what they are given.
    """
    parameters = _parameters(function)
    names = set(parameters)
    if not several_types and any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        names |= {*EDGE_FIELDS, "batch", "edge_label_index"}
    return names


def accepted(model: nn.Module, several_types: bool = False) -> set[str]:
    """The names of what a model takes, in ``forward`` or in ``encode``."""
    names = arguments(model.forward, several_types) if _overrides_forward(model) else set()
    if has_decoder(model) and "edge_label_index" not in names:
        names |= arguments(model.encode, several_types) - {"edge_label_index"}
    # PyG's ready-made models all name both, and refuse what their layers do not take.
    if isinstance(model, BasicGNN):
        if not model.supports_edge_weight:
            names.discard("edge_weight")
        if not model.supports_edge_attr:
            names.discard("edge_attr")
    return names


def _overrides_forward(model: nn.Module) -> bool:
    return getattr(model.forward, "__name__", "") != "_forward_unimplemented"


def is_required(model: nn.Module, name: str) -> bool:
    """Whether ``forward`` cannot be called without this argument."""
    parameter = _parameters(model.forward).get(name)
    return parameter is not None and parameter.default is parameter.empty


def has_decoder(model: nn.Module) -> bool:
    """Whether it predicts links by ``encode`` and ``decode``."""
    return callable(getattr(model, "encode", None)) and callable(getattr(model, "decode", None))
