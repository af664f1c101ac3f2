"""Is a model run on the whole graph, or on the receptive field of each target?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from butfor.errors import InputError, ModelError
from butfor.predict.predictor import Predictor, Scope

if TYPE_CHECKING:
    from torch import nn

    from butfor.graph.graph import Graph
    from butfor.predict.call import Task

__all__ = ["predictor_for"]

# Beyond this many numbers that a run on the whole graph reads, receptive fields are read instead.
CHEAP_NUMBERS = 60_000_000

TO_MEMORY = "load it into memory: butfor.open_graph(...).clone()"


def predictor_for(verify: object, model: nn.Module, graph: Graph, task: Task, **settings: Any) -> Predictor:
    """The model on this graph; it runs on the whole of it where that is wanted, or cheap, or cannot be avoided.

    Raises:
        InputError: ``verify`` is none of its values, or the whole graph is asked about and not to be read.
        ModelError: the model does not fit the graph, or reads all of it where only receptive fields are to be read.
    """
    if verify not in (None, *get_args(Scope)):
        raise InputError(f"verify is {verify!r}; give {' or '.join(map(repr, get_args(Scope)))}")
    if graph.path is not None:
        if verify == "whole-graph" or task == "graph":
            raise InputError(f"of the graph in {graph.path} only receptive fields are read; for more, {TO_MEMORY}")
        verify = "receptive-field"
    if verify == "whole-graph" or (verify is None and (task == "graph" or graph.numbers <= CHEAP_NUMBERS)):
        return Predictor.of(model, graph, task, **settings)
    if task == "graph":
        raise InputError("a whole graph is asked about, and only receptive fields are to be read; leave out verify")
    predictor = Predictor.of(model, graph, task, scope="receptive-field", **settings)
    if verify is None and not predictor.hears_only_messages:
        return Predictor.of(model, graph, task, **settings)
    if not predictor.depth or predictor.flow is None:
        raise ModelError(
            f"it cannot be counted how often {type(predictor.model).__name__} passes messages, so its receptive fields "
            "are not known; explain it on a graph in memory, with verify='whole-graph'"
        )
    return predictor
