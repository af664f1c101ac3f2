"""The commands; each is imported only when it is run."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from cyclopts import App, Parameter, Token, convert

from butfor.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "app"]


@dataclass(frozen=True)
class _Command:
    summary: str
    examples: tuple[str, ...]


COMMANDS: dict[str, _Command] = {
    "datasets": _Command(
        "Show the paper's graphs, write one to a file, or describe graphs of your own.",
        (
            "butfor datasets",
            "butfor datasets tree-cycles --seed 3 --out graph.npz",
            "butfor datasets edges.csv --node-table nodes.csv",
        ),
    ),
    "convert": _Command(
        "Write a graph to a folder that is opened without being read, however large it is.",
        (
            "butfor convert edges.parquet --node-table nodes.parquet --out papers",
            "butfor convert edges.csv --node-table nodes.csv --undirected --memory 500MB --out accounts",
        ),
    ),
    "train": _Command(
        "Train the paper's GCN on a graph, or a classifier of whole graphs, and write a checkpoint.",
        (
            "butfor train tree-cycles --out runs/tree-cycles",
            "butfor train graph.npz --epochs 500 --out runs/mine",
            "butfor train data/Mutagenicity --out runs/mutag",
        ),
    ),
    "explain": _Command(
        "Find the fewest edits that change a prediction.",
        (
            "butfor explain --checkpoint runs/tree-cycles --nodes test --out cfs.jsonl",
            "butfor explain --checkpoint runs/tree-cycles --nodes 600-620 --method cf-gnn",
            "butfor explain --model models:gcn --weights gcn.safetensors --graph graph.npz",
            "butfor explain --model models:gae --graph graph.npz --links 3-17,4-9 --threshold 0 --space rules.json",
            "butfor explain --checkpoint runs/mutag --graphs 0-20 --out mutag.jsonl",
        ),
    ),
    "check": _Command(
        "Check the proofs of results, without the search that found them.",
        (
            "butfor explain --checkpoint runs/tree-cycles --certificate --out cfs.jsonl",
            "butfor check cfs.jsonl --checkpoint runs/tree-cycles",
        ),
    ),
    "evaluate": _Command(
        "Measure results by the paper's four metrics, beside the paper's numbers.",
        (
            "butfor evaluate cfs.jsonl --checkpoint runs/tree-cycles",
            "butfor evaluate greedy.jsonl cf-gnn.jsonl",
        ),
    ),
    "show": _Command(
        "Show one result in words, and as a picture.",
        (
            "butfor show cfs.jsonl --node 600",
            "butfor show cfs.jsonl --node 600 --checkpoint runs/tree-cycles --out node-600.png",
            "butfor show mutag.jsonl --graph 3 --checkpoint runs/mutag --out molecule.png",
        ),
    ),
    "report": _Command(
        "Write all results of a run into one page to look through.",
        (
            "butfor report cfs.jsonl --checkpoint runs/tree-cycles --out report.html",
            "butfor report results/ --model models:gcn --weights gcn.safetensors --graph graph.npz",
        ),
    ),
    "explore": _Command(
        "Open a page to look at predictions, try out edits and find the fewest.",
        (
            "butfor explore --checkpoint runs/tree-cycles --node 600",
            "butfor explore --model models:gcn --weights gcn.safetensors --graph graph.npz --space rules.json",
        ),
    ),
    "reproduce": _Command(
        "Run the paper's evaluation again, table by table and figure by figure, beside its numbers.",
        (
            "butfor reproduce --quick",
            "butfor reproduce --out reproduction",
            "butfor reproduce table-2 significance --datasets tree-cycles",
        ),
    ),
    "demo": _Command(
        "See it all at work in a minute or two: graphs, models, explanations, metrics, pictures.",
        ("butfor demo --out demo",),
    ),
}


def _examples(*lines: str) -> str:
    return "\n".join(["Examples:" if len(lines) > 1 else "Example:", "```", *lines, "```"])


def _no_rounding(kind: Any, tokens: Sequence[Token]) -> Any:
    """Convert a value as cyclopts does, except that 1.5 is refused, not rounded, where a whole number is expected."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if int in kinds and float not in kinds:
        for token in tokens:
            if "." in token.value:
                raise ValueError(f"{token.value} is no whole number")
    return convert(kind, tokens)


app = App(
    name="butfor",
    default_parameter=Parameter(converter=_no_rounding),
    help="But for which edges would a graph neural network have predicted something else?",
    help_epilogue=_examples(
        "butfor demo --out demo",
        "butfor train tree-cycles --out runs/tree-cycles",
        "butfor explain --checkpoint runs/tree-cycles --nodes test --out cfs.jsonl",
    ),
    help_format="markdown",
    version=__version__,
    # Ctrl-C is handled by the commands and by main, which say what was kept.
    suppress_keyboard_interrupt=False,
)
app.register_install_completion_command(help="Let the shell complete commands and options (bash, zsh, fish).")
for _number, (_name, _command) in enumerate(COMMANDS.items()):
    app.command(
        f"butfor.cli.{_name}:{_name}",
        name=_name,
        help=_command.summary,
        sort_key=_number,  # the order in which they are used, not the alphabetical one
        help_epilogue=_examples(*_command.examples),
        help_format="markdown",
    )
