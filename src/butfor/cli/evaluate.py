"""``butfor evaluate``: the metrics of result files, one row for each file."""

from pathlib import Path
from typing import TYPE_CHECKING

from butfor.cli.labels import method_label
from butfor.cli.metrics_table import MetricsRow, print_metrics
from butfor.cli.output import note, read_with_notes
from butfor.cli.provenance import check_provenance
from butfor.cli.source import ModelAndGraphs, Source
from butfor.errors import InputError, StoreError
from butfor.evaluation import Metrics
from butfor.evaluation import evaluate as all_metrics
from butfor.graph.graph import Graph
from butfor.paper import dataset_of
from butfor.predict.predictor import Predictor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.result.counterfactual import Counterfactual

__all__ = ["evaluate"]


def evaluate(results: Path, /, *more: Path, source: Source | None = None) -> None:
    """Measure results; accuracy needs the model and a graph with known motifs, the other metrics do not.

    For whole graphs, accuracy is the share of the deleted edges that the data mark as ground truth, and strict is the
    share of explanations that delete only such edges. Graphs in which nothing is marked do not count.

    Args:
        results: a file that butfor explain wrote.
        more: further files, one row each.
        source: the model and the graph that the results are of.
    """
    paths = [results, *more]
    contents = {path: read_with_notes(path) for path in paths}
    for path, content in contents.items():
        if not content:
            raise StoreError(f"{path} holds no results; butfor explain --out {path} writes some")
    subject = None
    if source is not None and source.names_model:
        subject = source.read()
        for path, content in contents.items():
            check_provenance(path, content, subject)
    elif source is not None and source != Source():
        raise InputError("a graph alone does not do: give the model too, or leave both out")
    directed = None if source is None else source.options.directed
    for table in _tables(contents):
        _print(table, subject, directed)
    if subject is None:
        note("accuracy needs the model and the graph: give --checkpoint FOLDER, for example")


def _tables(contents: "dict[Path, Sequence[Counterfactual]]") -> "list[dict[Path, Sequence[Counterfactual]]]":
    """The files in groups, one for each table, whose results can be compared."""
    tables: list[dict[Path, Sequence[Counterfactual]]] = []
    for path, content in contents.items():
        table = next((table for table in tables if _comparable(next(iter(table.values())), content)), None)
        if table is None:
            tables.append({path: content})
        else:
            table[path] = content
    return tables


def _comparable(some: "Sequence[Counterfactual]", others: "Sequence[Counterfactual]") -> bool:
    """Whether results belong in one table: numbers of different graphs must not be compared."""
    if some[0].task != "graph" or others[0].task != "graph":
        return (some[0].task, some[0].graph_id) == (others[0].task, others[0].graph_id)
    graph_ids = {result.target: result.graph_id for result in some}
    return all(graph_ids.get(result.target, result.graph_id) == result.graph_id for result in others)


def _print(
    contents: "dict[Path, Sequence[Counterfactual]]", subject: ModelAndGraphs | None, directed: bool | None
) -> None:
    """Print the table of these files."""
    rows = []
    for path, results in contents.items():
        method = results[0].method
        rows.append(MetricsRow(f"{path.name}: {method_label(method)}", method, _metrics(results, subject, directed)))
        if failed := rows[-1].metrics.failed:
            note(f"{failed} of the {len(results)} targets in {path} failed; they count as not found")
    first = next(iter(contents.values()))[0]
    name = None if subject is None else subject.graphs[0].get("name")
    paper = dataset_of(name, first.graph_id) if first.task == "node" else None
    unnamed = name or "whole graphs" if first.task == "graph" else f"graph {first.graph_id}"
    print_metrics(rows, paper, f"{paper.title if paper else unnamed}: {len(rows)} result file{'s' * (len(rows) > 1)}")


def _metrics(results: "Sequence[Counterfactual]", subject: ModelAndGraphs | None, directed: bool | None) -> Metrics:
    """All metrics of one file, with accuracy where it means something."""
    if subject is None or results[0].task == "link":
        return all_metrics(results)
    if results[0].task == "graph":
        return all_metrics(results, graphs=subject.graphs)
    # The published graphs do not mark their motifs, but every class except 0 is one.
    published = dataset_of(None, results[0].graph_id) is not None
    motifs_known = published or "edge_motif" in subject.graph
    are_classes = all(result.before.value is None for result in results)
    only_deletions = all(len(result.removed_edges) == len(result.edits) for result in results)
    graph = Graph.of(subject.graph, directed)
    if not (motifs_known and are_classes and only_deletions) or graph.path is not None:
        return all_metrics(results)
    classes = Predictor.of(subject.model, graph).logits.argmax(1).cpu().numpy()
    return all_metrics(results, subject.graph, classes, motifs=True)
