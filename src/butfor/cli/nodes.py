"""Nodes and edges as a user writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from butfor.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["parse_edges", "parse_nodes"]


def parse_nodes(text: str, data: Data) -> list[int]:
    """The nodes that ``text`` means, each once, in the order given.

    "all"; the name of a mask, with or without its "_mask"; a list such as "1,2,5-9"; or a file of such
    lists, as a path or as "@path".

    Raises:
        InputError: it means none of these, no node at all, or a node that is not in the graph.
    """
    count = int(data.num_nodes)
    masks = _masks(data)
    if text == "all":
        return list(range(count))
    if text in masks:
        nodes = [int(node) for node in data[masks[text]].nonzero().flatten()]
        if not nodes:
            raise InputError(f"the mask {masks[text]} of this graph selects no nodes")
        return nodes
    if text.startswith("@"):
        return _read(Path(text[1:]), count)
    if re.fullmatch(r"[\d\s,-]+", text):
        return _listed(text, count, f"--nodes {text!r}")
    if Path(text).is_file():
        return _read(Path(text), count)
    known = ", ".join(sorted({name for name in masks if not name.endswith("_mask")})) or "none"
    raise InputError(
        f"--nodes {text!r} is neither all, a list such as 1,2,5-9, a file, nor a mask of this graph ({known})"
    )


def parse_edges(text: str) -> tuple[tuple[int, int], ...]:
    """The edges that a list such as "3-17,4-9" means.

    Raises:
        InputError: a part of it is no pair of nodes.
    """
    pairs = []
    for part in filter(None, re.split(r"[,\s]+", text)):
        match = re.fullmatch(r"(\d+)-(\d+)", part)
        if match is None:
            raise InputError(f"{part!r} is no edge; edges are written as two nodes, such as 3-17,4-9")
        pairs.append((int(match[1]), int(match[2])))
    return tuple(pairs)


def _masks(data: Data) -> dict[str, str]:
    """The graph's masks of nodes, under their own names and those without "_mask"."""
    names: dict[str, str] = {}
    for key in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        value = data[key]
        if isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.shape == (data.num_nodes,):
            names[key] = key
            names.setdefault(key.removesuffix("_mask"), key)
    return names


def _read(path: Path, count: int) -> list[int]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not a text file"
        raise InputError(f"cannot read nodes from {path}: {reason}") from problem
    text = "\n".join(line.partition("#")[0] for line in lines)
    return _listed(text, count, str(path))


def _listed(text: str, count: int, place: str) -> list[int]:
    nodes: dict[int, None] = {}
    for part in filter(None, re.split(r"[,\s]+", text)):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise InputError(f"{part!r} in {place} is no node; write nodes as 1,2,5-9")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise InputError(f"the range {part} in {place} is empty; write it as {last}-{first}")
        # Before the range is made: it may be longer than the memory.
        if last >= count:
            raise InputError(f"node {last} is not in this graph (0 to {count - 1})")
        nodes.update(dict.fromkeys(range(first, last + 1)))
    if not nodes:
        raise InputError(f"{place} names no nodes")
    return list(nodes)
