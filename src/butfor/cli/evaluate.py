"""``butfor evaluate``: the paper's metrics of result files."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from butfor.cli.labels import method_label
from butfor.cli.metrics_table import Measured, print_metrics
from butfor.cli.origin import check_origin, graph_of
from butfor.cli.output import note, read_noted
from butfor.cli.source import Source, Subject
from butfor.edits.edits import Deletion
from butfor.errors import InputError, StoreError
from butfor.evaluation import Measure, Metrics, motif_edges
from butfor.evaluation import evaluate as all_metrics
from butfor.paper import dataset_of
from butfor.session import Explainer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.result.counterfactual import Counterfactual

__all__ = ["evaluate"]


def evaluate(results: Path, /, *more: Path, source: Source | None = None) -> None:
    """Measure results; accuracy needs the model and a graph with known motifs, the other metrics do not.

    Of whole graphs accuracy is the share of the deleted edges that the data mark as ground truth, and strict the
    share of explanations that delete nothing else, over the graphs in which something is marked.

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
    subject = None
    if source is not None and source.names_model:
        subject = source.read()
        for path, content in contents.items():
            check_origin(path, content, subject)
    elif source is not None and source != Source():
        raise InputError("a graph alone does not do: give the model too, or leave both out")
    tables: list[list[Path]] = []
    for path, content in contents.items():
        table = next((table for table in tables if _comparable(contents[table[0]], content)), None)
        if table is None:
            tables.append([path])
        else:
            table.append(path)
    directed = None if source is None else source.options.directed
    for table in tables:
        _print({path: contents[path] for path in table}, subject, directed)
    if subject is None:
        note("accuracy needs the model and the graph: give --checkpoint FOLDER, for example")


def _comparable(some: "Sequence[Counterfactual]", others: "Sequence[Counterfactual]") -> bool:
    """Whether results may stand in one table: numbers of different graphs are not for comparing."""
    if some[0].task != "graph" or others[0].task != "graph":
        return (some[0].task, some[0].graph_id) == (others[0].task, others[0].graph_id)
    graph_ids = {result.target: result.graph_id for result in some}
    return all(graph_ids.get(result.target, result.graph_id) == result.graph_id for result in others)


def _print(contents: "dict[Path, list[Counterfactual]]", subject: Subject | None, directed: bool | None) -> None:
    rows = [
        Measured(f"{path.name}: {method_label(some[0].method)}", some[0].method, _measured(some, subject, directed))
        for path, some in contents.items()
    ]
    first = next(iter(contents.values()))[0]
    name = None if subject is None else subject.graphs[0].get("name")
    paper = dataset_of(name, first.graph_id) if first.task == "node" else None
    unnamed = name or "whole graphs" if first.task == "graph" else f"graph {first.graph_id}"
    print_metrics(rows, paper, f"{paper.title if paper else unnamed}: {len(rows)} result file{'s' * (len(rows) > 1)}")


def _measured(results: "Sequence[Counterfactual]", subject: Subject | None, directed: bool | None) -> Metrics:
    plain = all_metrics(results)
    if subject is None or results[0].task == "link":
        return plain
    if results[0].task == "graph":
        return _on_marked_edges(plain, results, subject)
    # The published graphs do not mark their motifs, but there every class except 0 is one.
    published = dataset_of(None, results[0].graph_id) is not None
    known = published or "edge_motif" in subject.graph
    of_classes = all(result.before.value is None for result in results)
    of_edges = all(isinstance(edit, Deletion) for result in results for edit in result.edits)
    if not (known and of_classes and of_edges):
        return plain
    classes = Explainer.of(subject.model, subject.graph, directed=directed).scene.classes
    return all_metrics(results, subject.graph, classes, motifs=True)


def _on_marked_edges(plain: Metrics, results: "Sequence[Counterfactual]", subject: Subject) -> Metrics:
    shares = []
    for result in results:
        data = graph_of(result, subject)
        marked = motif_edges(data) if "edge_motif" in data else set()
        if marked and result.removed_edges:
            shares.append(float(np.mean([(min(edge), max(edge)) in marked for edge in result.removed_edges])))
    return replace(plain, accuracy=Measure.of(shares), strict_accuracy=Measure.of([float(one == 1) for one in shares]))
