"""A small trained model and its graph, which come with the package: the same on every machine, and there at once."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from butfor.datasets import describe
from butfor.datasets.synthetic import tree_cycles
from butfor.errors import ModelError
from butfor.models.checkpoint import load_checkpoint

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from butfor.models.gcn import PaperGCN

__all__ = ["example"]


def example() -> tuple[PaperGCN, Data]:
    """The paper's GCN, trained, and its graph: binary trees with six-cycles attached to them (Tree-Cycles, seed 7).

    Training gives slightly different weights on different processors; these do not change.

    Raises:
        ModelError: the graph that this version generates is not the one that the model was trained on.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> data.num_nodes, data.class_names
        (871, ['base', 'motif'])
        >>> print(butfor.explain(model, data, 597))
        Node 597 is predicted 'motif' (0.85). But for this 1 of its 14 edges it would be 'base' (0.54): 596–597.
    """
    with as_file(files("butfor.models").joinpath("pretrained", "tree-cycles")) as folder:
        model, info = load_checkpoint(folder)
    data = tree_cycles(seed=7)
    if describe(data)["sha256"] != info["data"]["sha256"]:
        raise ModelError("the graph of the example is not the one that its model was trained on: install butfor again")
    return model, data  # type: ignore[return-value]  # the class is named in the checkpoint
