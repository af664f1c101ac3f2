"""Does it follow from a model's code that it hears along edges and of nothing else?

Its ``forward`` is run once with symbols instead of tensors. A symbol knows only what its rows stand for: nodes, or
edges. Known layers pass messages along the edges that they are given, known functions treat every row by itself, and
whatever else is done with a symbol ends the attempt: also to ask for its size, so that no decision can depend on it.
If ``forward`` comes to an end, it does the same on every graph, and a node hears as far as messages were passed. How
the last symbol was made says what the model is: a stack of certain layers, say.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butfor.predict.call import Call

__all__ = ["Symbol", "followed"]

# Layers that read, for each node, what its edges bring and nothing else.
LAYERS = (
    gnn.APPNP,
    gnn.GATConv,
    gnn.GATv2Conv,
    gnn.GCNConv,
    gnn.GINConv,
    gnn.GINEConv,
    gnn.GraphConv,
    gnn.MFConv,
    gnn.ResGatedGraphConv,
    gnn.SAGEConv,
    gnn.SGConv,
    gnn.TransformerConv,
)

# Modules that treat every row by itself; `_is_row_wise` looks closer at some. The last line are parts of layers.
ROW_WISE = (
    *(nn.Identity, nn.Dropout, nn.Linear, gnn.Linear, nn.BatchNorm1d, nn.LayerNorm),
    *(nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid),
    *(nn.Sequential, nn.ModuleList, gnn.MLP, gnn.BatchNorm),
    *(gnn.aggr.SumAggregation, gnn.aggr.MeanAggregation, gnn.aggr.MaxAggregation, gnn.aggr.MinAggregation),
    gnn.aggr.MulAggregation,
)

# Functions and methods of tensors, by name, of one or several arguments with the same rows.
SINGLE = {"relu", "leaky_relu", "elu", "gelu", "silu", "tanh", "sigmoid", "neg", "clone", "contiguous"}
SEVERAL = {"add", "sub", "mul", "div"}
ALONG_A_ROW = {"cat", "softmax", "log_softmax"}

# What could be exchanged in a single layer.
METHODS = {"forward", "propagate", "message", "message_and_aggregate", "aggregate", "update", "edge_update"}


class Unknown(Exception):
    """Something is done with a symbol of which it is not known what it reads.

    They are counted, because a model may catch them.
    """

    count = 0

    def __init__(self, what: str) -> None:
        super().__init__(what)
        Unknown.count += 1


class Symbol(Tensor):
    """A tensor of which it is known what its rows stand for, and how it was made.

    As a tensor, so that ``isinstance(x, Tensor)`` is answered as it is in a real run.

    Attributes:
        rows: "nodes", "edges", or "edge_index" for that itself.
        made: by what: the name of a function, or a module.
        sources: from which symbols, those that edges carry behind the others.
        width: how many features it has, if it is what the model was given.
    """

    rows: str
    made: Any
    sources: tuple[Symbol, ...]
    width: int | None

    @classmethod
    def standing_for(
        cls, rows: str, made: Any = None, sources: tuple[Symbol, ...] = (), width: int | None = None
    ) -> Symbol:
        """A symbol for something."""
        symbol = torch.empty(0, device="meta").as_subclass(cls)
        symbol.rows, symbol.made, symbol.sources, symbol.width = rows, made, sources, width
        return symbol

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Everything that torch does with a tensor passes through here."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in SINGLE:
            return _single(name, *args, **kwargs)
        if name == "dropout" and kwargs.get("training") is False:
            return _single(nn.Identity(), *args)
        if name in SEVERAL and not kwargs:
            return _together(name, args)
        if name in ALONG_A_ROW and _across_columns(args[1:], kwargs):
            return _together(name, args[0] if name == "cat" else args[:1])
        if name == "size" and args[1:] in ((1,), (-1,)) and args[0].width is not None:
            # How many features there are does not depend on the graph.
            return args[0].width
        raise Unknown(name)


def followed(call: Call) -> Symbol | None:
    """What the model returns as a symbol, if nothing but messages along edges reaches a node; None if not known.

    Call it inside `preserved`; what the model keeps of a run it keeps in a copy.
    """
    if call.task != "node" or call.graph.types is not None or call.wants_batch:
        return None
    if not all(map(is_as_its_class_says, call.model.modules())):
        return None
    unknown = Unknown.count
    try:
        # Weights are not copied, because they may be large.
        model = copy.deepcopy(call.model, {id(weight): weight for weight in call.model.parameters()})
        for module in model.modules():
            _follow(module)
        before = _state(model)
        out: Symbol = model(
            Symbol.standing_for("nodes", width=call.graph.x.size(1)), Symbol.standing_for("edge_index"), **_fields(call)
        )
        # What a run leaves behind could be read by the next.
        if _rows(out) != "nodes" or _state(model) != before or Unknown.count != unknown:
            return None
        for module in model.modules():
            vars(module).pop("forward", None)
        return out
    except Exception:  # whatever code does that is given something else than numbers
        return None


def is_as_its_class_says(module: nn.Module) -> bool:
    """Whether a module does what its class does: it has no hooks, and no methods of its own."""
    hooks = [value for name, value in vars(module).items() if "forward" in name and name.endswith("hooks")]
    return not any(hooks) and not METHODS & vars(module).keys()


def _follow(module: nn.Module) -> None:
    """Let a known module answer with symbols; any other runs its own code."""
    if type(module) in LAYERS and all(map(_is_row_wise, list(module.modules())[1:])):
        vars(module)["forward"] = partial(_layer, module)
    elif _is_row_wise(module) and not list(module.children()):
        vars(module)["forward"] = partial(_single, module)


def _state(model: nn.Module) -> list[tuple[str, int, int]]:
    """All that modules keep, by identity; how often tensors were written into, and how much there is in lists."""
    kept = [(name, value) for module in model.modules() for name, value in vars(module).items()]
    kept += [*model.named_parameters(), *model.named_buffers()]

    def version(value: Any) -> int:
        if isinstance(value, Tensor):
            return value._version
        return len(value) if isinstance(value, (list, dict, set)) else 0

    return [(name, id(value), version(value)) for name, value in kept]


def _fields(call: Call) -> dict[str, Symbol]:
    """What the model takes besides features and edges."""
    edges, nodes = call.graph.edge_fields(), call.graph.node_fields()
    # What is known of rows is known of matrices: one number for each node is broadcast in another way.
    if any(nodes[name].dim() != 2 for name in call.fields if name not in edges):
        raise Unknown("a field of nodes")
    return {name: Symbol.standing_for("edges" if name in edges else "nodes", name) for name in call.fields}


def _layer(layer: nn.Module, x: Any, edge_index: Any, *more: Any, **named: Any) -> Symbol:
    """What a layer of `LAYERS` returns."""
    carried = [one for one in (*more, *named.values()) if one is not None]
    if named.keys() - {"edge_weight", "edge_attr"} or any(_rows(one) != "edges" for one in carried):
        raise Unknown("an argument of a layer")
    if (_rows(x), _rows(edge_index)) != ("nodes", "edge_index"):
        raise Unknown("a layer that is given something else than nodes and edges")
    return Symbol.standing_for("nodes", layer, (x, *carried))


def _single(made: Any, value: Any, *settings: Any, **more: Any) -> Symbol:
    """What a function of every row returns."""
    if _rows(value) not in ("nodes", "edges") or any(isinstance(one, Tensor) for one in (*settings, *more.values())):
        raise Unknown("a function of several tensors")
    if isinstance(made, (nn.Identity, nn.Dropout)):
        same: Symbol = value
        return same
    if more.get("inplace") or getattr(made, "inplace", False):
        # What it was before is not this symbol any more.
        raise Unknown("a function that writes over its argument")
    return Symbol.standing_for(value.rows, made, (value,))


def _together(made: str, values: Any) -> Symbol:
    """What a function of the rows of several matrices returns; numbers and vectors are the same for all rows."""
    for one in values:
        same_for_all = isinstance(one, (int, float)) or (type(one) in (Tensor, nn.Parameter) and one.dim() < 2)
        if not same_for_all and _rows(one) != "nodes":
            raise Unknown("a tensor that is not of nodes")
    return Symbol.standing_for("nodes", made, tuple(one for one in values if isinstance(one, Symbol)))


def _across_columns(rest: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    return (rest[0] if rest else named.get("dim")) in (1, -1)


def _rows(value: Any) -> str:
    if not isinstance(value, Symbol):
        raise Unknown("a tensor that the model was not given")
    return value.rows


def _is_row_wise(module: nn.Module) -> bool:
    if isinstance(module, nn.BatchNorm1d):
        return type(module) is nn.BatchNorm1d and module.running_mean is not None
    if isinstance(module, nn.LayerNorm):
        return type(module) is nn.LayerNorm and len(module.normalized_shape) == 1
    return type(module) in ROW_WISE
