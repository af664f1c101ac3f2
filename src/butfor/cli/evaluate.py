"""``butfor evaluate``: the paper's metrics of result files."""

from pathlib import Path
from typing import TYPE_CHECKING

from butfor.cli.labels import method_label
from butfor.cli.metrics_table import Measured, print_metrics
from butfor.cli.output import note, read_noted
from butfor.cli.source import Source
from butfor.errors import InputError, StoreError
from butfor.evaluation import Metrics
from butfor.evaluation import evaluate as all_metrics
from butfor.explainer import Explainer
from butfor.paper import dataset_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_geometric.data import Data

    from butfor.counterfactual import Counterfactual

__all__ = ["check_origin", "evaluate"]


def evaluate(results: Path, /, *more: Path, source: Source | None = None) -> None:
    """Measure results; accuracy needs the model and a graph with known motifs, the other metrics do not.

    Args:
        results: a file that butfor explain wrote.
        more: further files, one row each.
        source: the model and the graph that the results are of.
    """
    paths = [results, *more]
    contents = {path: read_noted(path) for path in paths}
    for path, content in contents.items():
        if not content:
            raise StoreError(f"{path} holds no results; butfor explain --out {path} writes some")
    explainer, data = None, None
    if source is not None and source.names_model:
        model, data = source.read()
        explainer = Explainer.of(model, data, directed=source.options.directed)
        for path, content in contents.items():
            check_origin(path, content, explainer)
    elif source is not None and source != Source():
        raise InputError("a graph alone does not do: give the model too, or leave both out")
    # One table per graph: numbers of different graphs are not for comparing.
    for graph_id in dict.fromkeys(content[0].graph_id for content in contents.values()):
        rows = [
            Measured(
                f"{path.name}: {method_label(content[0].method)}",
                content[0].method,
                _measured(content, data, explainer),
            )
            for path, content in contents.items()
            if content[0].graph_id == graph_id
        ]
        name = data.name if data is not None and "name" in data else None
        paper = dataset_of(name, graph_id)
        title = paper.title if paper else f"graph {graph_id}"
        print_metrics(rows, paper, f"{title}: {len(rows)} result file{'s' * (len(rows) > 1)}")
    if explainer is None:
        note("accuracy needs the model and the graph: give --checkpoint FOLDER, for example")


def check_origin(path: Path, results: "Sequence[Counterfactual]", explainer: Explainer) -> None:
    """Refuse results of another graph or model.

    Raises:
        StoreError: saying which of the two it is.
    """
    for result in results:
        for what, theirs, ours in (
            ("graph", result.graph_id, explainer.graph_id),
            ("model", result.model_id, explainer.model_id),
        ):
            if theirs != ours:
                raise StoreError(
                    f"{path} holds results of another {what} ({theirs} instead of {ours}); "
                    f"give the {what} that they are of"
                )


def _measured(results: "Sequence[Counterfactual]", data: "Data | None", explainer: Explainer | None) -> Metrics:
    if data is None or explainer is None:
        return all_metrics(results)
    # The published graphs do not mark their motifs, but there every class except 0 is one.
    published = dataset_of(None, explainer.graph_id) is not None
    return all_metrics(results, data, explainer.scene.classes, motifs=True if published else None)
