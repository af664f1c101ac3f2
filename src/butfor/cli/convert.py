"""``butfor convert``: a graph as a folder on disk, which need not fit into memory."""

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from butfor.cli.output import say
from butfor.cli.source import NODE_TABLE_HELP
from butfor.errors import InputError

__all__ = ["convert"]

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def convert(
    source: str,
    /,
    *,
    out: Path,
    node_table: Annotated[Path | None, Parameter(alias="--nodes", help=NODE_TABLE_HELP)] = None,
    undirected: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    memory: str = "1GB",
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    quiet: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> None:
    """Write a graph to a folder that every command opens without reading it: give it as --graph.

    Edge lists and node tables (.csv, .parquet) are read in parts and may be larger than memory. The folder appears when
    all is written.

    Args:
        source: the file of a graph, or a folder with raw files.
        out: the folder to write.
        node_table: `NODE_TABLE_HELP` describes it.
        undirected: add the directions that are missing in a file that lists every edge once.
        memory: how much may be used for rows and edges at a time, besides what the program itself takes.
        force: replace the folder if it is a converted graph.
        quiet: show no progress bar.
    """
    at_most = parse_size(memory)
    from butfor import open_graph
    from butfor.datasets import convert_graph

    convert_graph(source, out, nodes=node_table, undirected=undirected, memory=at_most, force=force, progress=not quiet)
    data = open_graph(out)
    say(f"{source}: {data.num_nodes} nodes and {data.num_edges} edges (both directions) are in {out}")
    say(f"next: butfor explain --graph {out} --model models:gcn --weights gcn.safetensors")


def parse_size(text: str) -> int:
    """A number of bytes: 500MB, 1.5GB.

    Raises:
        InputError: it is none, or less than a megabyte.
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([KMG]?)I?B?", text.strip().upper())
    size = 0 if found is None else int(float(found[1]) * UNITS[found[2]])
    if size < 10**6:
        raise InputError(f"--memory is {text!r}; give a size of at least 1MB, such as 500MB or 2GB")
    return size
