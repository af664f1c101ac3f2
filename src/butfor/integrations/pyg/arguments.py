"""The arguments that PyG's ``Explainer`` passes to a model, sorted by what happens to them in an edited graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from butfor.boundary.arguments import check_whole
from butfor.errors import InputError, ModelError, one_line
from butfor.graph.fields import EDGE_FIELDS, node_fields
from butfor.graph.validate import check_plain
from butfor.predict.preserved import preserved
from butfor.problem.target import Pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.predict.call import Task

__all__ = ["Arguments", "call", "chosen_rows"]

MADE_BY_BUTFOR = ("batch", "batch_dict", "edge_label_index")


@dataclass(frozen=True, eq=False)
class Arguments:
    """The arguments of a model, as butfor needs them. All tensors are copies.

    Attributes:
        model: the user's model in a form that butfor can call: arguments that no edit changes are fixed.
        data: the graph, with the further attributes of its nodes and edges.
        batch: the graph that each node belongs to, if it was given and there is one type of nodes.
        pairs: for link prediction, the pairs of nodes.
    """

    model: nn.Module
    data: Data | HeteroData
    batch: Tensor | None
    pairs: list[Pair] | None

    @classmethod
    def of(cls, model: nn.Module, task: Task, x: Any, edge_index: Any, given: Mapping[str, Any]) -> Arguments:
        """Sort the arguments that are ``given`` besides features and edges.

        Raises:
            InputError: an argument is malformed, or cannot be carried over to an edited graph.
        """
        given, several_types = dict(copied(given)), isinstance(x, Mapping)
        # butfor makes these two arguments itself, for each batch of edited graphs.
        called = "batch_dict" if "batch_dict" in given and several_types else "batch"
        batch = given.pop(called, None)
        pairs = _pairs(given.pop("edge_label_index", None)) if task == "link" else None
        own = [name for name, value in ((called, batch), ("edge_label_index", pairs)) if value is not None]
        # At other task levels they stay among the arguments and should not matter. If they do, the model predicts
        # something else for a part of the graph, and this is noticed.
        carried = {
            name: value for name, value in given.items() if name not in MADE_BY_BUTFOR and _may_be_carried(value)
        }
        fixed = {name: value for name, value in given.items() if name not in carried}
        make: Any = _hetero_graph if several_types else _graph
        data = make(copied(x), copied(edge_index), carried)
        if several_types:
            _set_batches(data, batch, task)
        elif batch is not None:
            _check_batch(batch, int(data.num_nodes))
            if task != "graph":
                data.batch = batch
        return cls(_with_fixed(model, fixed, [*carried, *own]), data, None if several_types else batch, pairs)


def call(model: nn.Module, task: Task, x: Any, edge_index: Any, given: Mapping[str, Any]) -> Tensor:
    """The model's output for copies of these arguments, because it may write into them.

    Raises:
        ModelError: it fails, or returns no rows.
    """
    name = type(model).__name__
    try:
        with preserved(model), torch.no_grad():
            out = model(copied(x), copied(edge_index), **copied(given))
    except (Exception, SystemExit) as error:
        # Whatever the user's code does.
        passed = ", ".join(["x", "edge_index", *(f"{argument}=..." for argument in given)])
        raise ModelError(f"{name} fails as PyG calls it, model({passed}): {one_line(error)}") from error
    if isinstance(out, Tensor) and out.dim() and len(out):
        return out
    what = f"tensor of shape {tuple(out.shape)}" if isinstance(out, Tensor) else type(out).__name__
    raise ModelError(f"{name} does not return a tensor with one row for each {task}: it returns a {what}")


def copied(value: Any) -> Any:
    """The same value with copies of all tensors in it."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: copied(one) for key, one in value.items()}
    return type(value)(map(copied, value)) if type(value) in (list, tuple) else value


def chosen_rows(index: int | Tensor | None, rows: int, task: Task) -> list[int]:
    """The rows of the model's output to explain, each once.

    Raises:
        InputError: there are none, or a row does not exist.
    """
    if index is None:
        return list(range(rows))
    if not isinstance(index, torch.Tensor):
        check_whole(index, "index")
    given = torch.as_tensor(index)
    check_plain("index", given)
    if given.dtype == torch.bool:
        if given.shape != (rows,):
            raise InputError(f"index is a mask of shape {tuple(given.shape)}, but the model has {rows} outputs")
        given = given.nonzero()
    if not given.numel():
        raise InputError("index is empty, so there is nothing to explain; leave it out to explain all outputs")
    if given.is_floating_point() or given.is_complex():
        raise InputError(f"index holds numbers of type {given.dtype}; give whole numbers, or a mask")
    for row in given.flatten().tolist():
        if not 0 <= row < rows:
            raise InputError(f"index is {row}, but the model has outputs for {rows} {task}s (0 to {rows - 1})")
    return list(dict.fromkeys(given.flatten().tolist()))


def _pairs(edge_label_index: Any) -> list[Pair]:
    if edge_label_index is None:
        raise InputError(
            "task_level='edge' explains pairs of nodes, and none were given; pass them to the explainer as "
            "edge_label_index=..., of shape (2, number of pairs), which the model takes by this name"
        )
    if not isinstance(edge_label_index, Tensor) or edge_label_index.dim() != 2 or len(edge_label_index) != 2:
        raise InputError(f"edge_label_index is {_described(edge_label_index)}; (2, number of pairs) is needed")
    return [Pair(int(u), int(v)) for u, v in edge_label_index.T.tolist()]


def _check_batch(batch: Any, nodes: int) -> None:
    needed = f"the number of its graph is needed for each of the {nodes} nodes"
    if not isinstance(batch, Tensor):
        raise InputError(f"batch is {_described(batch)}; {needed}, as a tensor")
    if batch.shape != (nodes,):
        raise InputError(f"batch has the shape {tuple(batch.shape)}; {needed}")
    if batch.is_floating_point() or batch.is_complex() or batch.dtype == torch.bool:
        raise InputError(f"batch holds numbers of type {batch.dtype}; {needed}, as a whole number")
    if nodes and int(batch.min()) < 0:
        raise InputError(f"batch holds {int(batch.min())}; graphs are counted from 0")


def _set_batches(data: HeteroData, batch: Any, task: Task) -> None:
    """Let the nodes of each type know which graph they belong to.

    Raises:
        InputError: it is not known for each node, or there are several graphs to explain.
    """
    if batch is None:
        return
    if not isinstance(batch, Mapping) or set(batch) != set(data.node_types):
        raise InputError(f"batch is {_described(batch)}; a tensor for each node type is needed, by its name")
    for kind, numbers in batch.items():
        _check_batch(numbers, int(data[kind].num_nodes))
        if task == "graph" and bool(numbers.any()):
            raise InputError("there are several graphs of several node types; explain one of them at a time")
        if task != "graph":
            data[kind].batch = numbers


def _may_be_carried(value: Any) -> bool:
    """Whether an argument may belong to nodes or edges; settings such as numbers and names do not."""
    return isinstance(value, Mapping) or (isinstance(value, Tensor) and value.dim() > 0)


def _graph(x: Tensor, edge_index: Tensor, given: Mapping[str, Any]) -> Data:
    """The graph, with further attributes of its nodes and edges."""
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise InputError("edge_index is a sparse matrix; give the edges as a tensor of shape (2, number of edges)")
    data = Data(x=x, edge_index=edge_index)
    for name, value in given.items():
        data[name] = value
        if not isinstance(value, Tensor) or name not in (*EDGE_FIELDS, *node_fields(data)):
            raise _not_carried(name, value)
    return data


def _hetero_graph(x: Mapping[str, Tensor], edge_index: Mapping[Any, Tensor], given: Mapping[str, Any]) -> HeteroData:
    """The same for a graph of several types."""
    data = HeteroData()
    for kind, features in x.items():
        data[kind].x = features
    for relation, ends in edge_index.items():
        data[relation].edge_index = ends
    for name, value in given.items():
        field = name.removesuffix("_dict")
        if not isinstance(value, Mapping):
            raise _not_carried(name, value)
        for kind, carried in value.items():
            data[kind][field] = carried
            if field not in EDGE_FIELDS and (kind not in x or field not in node_fields(data[kind])):
                raise _not_carried(name, value)
    return data


def _described(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _not_carried(name: str, value: Any) -> InputError:
    return InputError(
        f"the model is given {name}, {_described(value)}, and nothing says what becomes of it in an edited graph: what "
        f"edges carry must be named {', '.join(EDGE_FIELDS)}, what nodes have must have one row for each and be no "
        "label or mask (with _dict after the name where there are several types); make anything else an attribute of "
        "the model"
    )


def _with_fixed(model: nn.Module, fixed: Mapping[str, Any], names: Sequence[str]) -> nn.Module:
    """The model in a form that takes only the arguments ``names``; the ``fixed`` ones are added.

    If there are no fixed arguments, it is the model itself, for which butfor may have a fast oracle.
    """
    known = inspect.signature(model.forward).parameters
    fixed = {name: value for name, value in fixed.items() if name not in known or known[name].default is not value}
    if not fixed and all(name in known for name in names):
        return model

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.model(*args, **kwargs, **copied(self.fixed))

    # butfor finds out from the signature which arguments a model takes.
    taken = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", "x", "edges", *names)
    ]
    vars(forward)["__signature__"] = inspect.Signature(taken)
    wrapper: nn.Module = type(type(model).__name__, (nn.Module,), {"forward": forward})()
    wrapper.model, wrapper.fixed = model, dict(fixed)  # type: ignore[assignment]  # a module takes anything
    return wrapper
