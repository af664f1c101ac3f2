"""``butfor show``: one result in words, and as a picture."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from butfor.cli.output import print_table, read_with_notes, say
from butfor.cli.source import Source
from butfor.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.result.counterfactual import Counterfactual

__all__ = ["show"]

PICTURES = (".png", ".svg", ".pdf")


def show(
    results: Path,
    /,
    *,
    node: str | None = None,
    link: str | None = None,
    number: int | None = None,
    out: Path | None = None,
    edge_labels: str | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    source: Source | None = None,
) -> None:
    """Show the result of one node, link or graph; if none is given, one sentence for every result.

    Args:
        results: a file that butfor explain wrote.
        node: the node whose result to show; by its own id if the nodes have ids.
        link: the link whose result to show, given as its two nodes: 3-17.
        number: the number of the graph whose result to show; --graph 3 is the same as --number 3.
        out: draw the result into this file (.png, .svg or .pdf); this needs the model and the graph.
        edge_labels: write this edge attribute of the graph, such as edge_weight, beside edges of the picture.
        force: replace the picture if it exists.
        source: the model and the graph that the results are of.
    """
    found = read_with_notes(results)
    if not found:
        raise StoreError(f"{results} holds no results")
    if source is not None and number is None and _is_number(source.graph):
        number, source = int(str(source.graph)), replace(source, graph=None)
    asked = {"node": node, "link": link, "graph": None if number is None else str(number)}
    given = {task: name.strip() for task, name in asked.items() if name is not None}
    if not given:
        if out is not None:
            raise InputError(f"which result is to be drawn? Give --{found[0].task}")
        for result in found:
            say(str(result))
        return
    result = _result(results, found, given)
    if out is None:
        if edge_labels is not None:
            raise InputError("--edge-labels is for a picture: give --out FILE too")
        _print(result)
        return
    _check_picture(out, force)
    if source is None or not source.names_model:
        raise InputError("a picture needs the model and the graph: give --checkpoint FOLDER, for example")
    from butfor.cli.provenance import check_provenance, graph_of

    subject = source.read()
    check_provenance(results, [result], subject)
    result.plot(graph_of(result, subject), subject.model, path=out, edge_labels=edge_labels)
    _print(result)  # last, so that the picture is there even if nobody reads the output
    say(f"the picture is in {out}")


def _is_number(graph: str | None) -> bool:
    """Whether --graph is the number of an explained graph, and not a file or folder to read graphs from."""
    return graph is not None and graph.isdecimal() and not Path(graph).exists()


def _result(path: Path, found: "Sequence[Counterfactual]", given: dict[str, str]) -> "Counterfactual":
    if len(given) > 1:
        raise InputError(f"--{' and --'.join(given)} are given together; one result is shown at a time")
    (task, name), *_ = given.items()
    if task != found[0].task:
        raise InputError(f"{path} holds results of {found[0].task}s, not of {task}s: give --{found[0].task}")
    for result in found:
        if _name(result) == name:
            return result
    some = ", ".join(_name(result) for result in found[:8]) + (", …" if len(found) > 8 else "")
    raise InputError(f"{task} {name} is not in {path}, which has {len(found)} {task}s: {some}")


def _name(result: "Counterfactual") -> str:
    """The target as the command line names it: the id of a node, the two ids of a link, the number of a graph."""
    kinds = result.node_type if isinstance(result.node_type, tuple) else (result.node_type,) * 2
    if isinstance(result.target, tuple):
        return "-".join(map(result.name, result.target, kinds))
    return str(result.target) if result.task == "graph" else result.name(result.target, kinds[0])


def _check_picture(out: Path, force: bool) -> None:
    if out.suffix not in PICTURES:
        raise InputError(f"{out} is no picture: its name must end in {', '.join(PICTURES)}")
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {out.parent}")
    if out.exists() and not force:
        raise InputError(f"{out} exists already; choose another file, or replace it with --force")


def _size(result: "Counterfactual") -> str:
    if result.size is None:
        return "–"
    removed, added, changed = len(result.removed_edges), len(result.added_edges), len(result.changes)
    if removed == result.size:
        return f"{removed} of {result.edges} edges"
    parts = [(removed, "edges deleted"), (added, "edges added"), (changed, "features changed")]
    return ", ".join(f"{what}: {count}" for count, what in parts if count)


def _print(result: "Counterfactual") -> None:
    say(str(result))
    say(result.verdict)
    bound = "none exists" if result.lower_bound is None else f"at least {result.lower_bound:g}"
    rows = [
        ["status", str(result.status)],
        ["size", _size(result)],
        ["cost", f"{result.cost:g}, proved: {bound}"],
        ["graph" if result.task == "graph" else "neighbourhood", f"{result.nodes} nodes, {result.edges} edges"],
        ["goal", str(result.goal)],
        ["method", str(result.method)],
        ["tried", f"{result.evaluations} edit sets in {result.seconds:.3f} s"],
        ["seed", str(result.seed)],
        ["graph, model", f"{result.graph_id}, {result.model_id}"],
        ["computed with", ", ".join(f"{name} {version}" for name, version in result.versions.items())],
    ]
    if result.note:
        rows.append(["note", result.note])
    say()
    print_table(["", ""], rows, left=2)
