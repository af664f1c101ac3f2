"""``butfor show``: one result in words, and as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from butfor.cli.output import print_table, read_noted, say
from butfor.cli.source import Source
from butfor.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butfor.counterfactual import Counterfactual

__all__ = ["show"]

PICTURES = (".png", ".svg", ".pdf")


def show(
    results: Path,
    /,
    *,
    node: str | None = None,
    out: Path | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    source: Source | None = None,
) -> None:
    """Show the result of one node; without a node, one sentence for each.

    Args:
        results: a file that butfor explain wrote.
        node: whose result; by its own id where the graph has ids.
        out: draw it into this file (.png, .svg or .pdf); this needs the model and the graph.
        force: replace the picture if it exists.
        source: the model and the graph that the results are of.
    """
    found = read_noted(results)
    if not found:
        raise StoreError(f"{results} holds no results")
    if node is None:
        if out is not None:
            raise InputError("which result is to be drawn? Give --node")
        for result in found:
            say(str(result))
        return
    result = _result(results, found, node)
    if out is None:
        _print(result)
        return
    _check_picture(out, force)
    if source is None or not source.names_model:
        raise InputError("a picture needs the model and the graph: give --checkpoint FOLDER, for example")
    from butfor.cli.evaluate import check_origin
    from butfor.explainer import Explainer

    model, data = source.read()
    check_origin(results, [result], Explainer.of(model, data, directed=source.options.directed))
    _print(result)
    result.plot(data, model, path=out)
    say(f"the picture is in {out}")


def _result(path: Path, found: "Sequence[Counterfactual]", node: str) -> "Counterfactual":
    for result in found:
        if _name(result) == node.strip():
            return result
    some = ", ".join(_name(result) for result in found[:8]) + (", …" if len(found) > 8 else "")
    raise InputError(f"node {node} is not in {path}, which has {len(found)} nodes: {some}")


def _name(result: "Counterfactual") -> str:
    """What the target is called on the command line: the id of a node, or the two of a link."""
    nodes = result.target if isinstance(result.target, tuple) else (result.target,)
    return "-".join(map(result.name, nodes))


def _check_picture(out: Path, force: bool) -> None:
    if out.suffix not in PICTURES:
        raise InputError(f"{out} is no picture: its name must end in {', '.join(PICTURES)}")
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {out.parent}")
    if out.exists() and not force:
        raise InputError(f"{out} exists already; choose another file, or replace it with --force")


def _print(result: "Counterfactual") -> None:
    say(str(result))
    say(result.status.sentence)
    bound = "none exists" if result.lower_bound is None else f"at least {result.lower_bound:g}"
    rows = [
        ["status", str(result.status)],
        ["size", "–" if result.size is None else f"{result.size} of {result.edges} edges"],
        ["cost", f"{result.cost:g}, proved: {bound}"],
        ["neighbourhood", f"{result.nodes} nodes, {result.edges} edges"],
        ["goal", result.goal],
        ["method", result.method],
        ["tried", f"{result.evaluations} edit sets in {result.seconds:.3f} s"],
        ["seed", str(result.seed)],
        ["graph, model", f"{result.graph_id}, {result.model_id}"],
        ["computed with", ", ".join(f"{name} {version}" for name, version in result.versions.items())],
    ]
    if result.note:
        rows.append(["note", result.note])
    say()
    print_table(["", ""], rows, left=2)
