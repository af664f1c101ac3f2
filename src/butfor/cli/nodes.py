"""Nodes and edges as a user writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from butfor.datasets.ids import OwnIds
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch_geometric.data import Data

__all__ = ["parse_edges", "parse_nodes"]

# The position of each node by the id it has of its own.
Places = dict[str, int]


def parse_nodes(text: str, data: Data) -> list[int]:
    """The nodes that ``text`` means, each once, in the order given.

    "all"; the name of a mask, with or without its "_mask"; a list such as "1,2,5-9"; or a file of such
    lists, as a path or as "@path". If the graph has node ids of its own, lists are of these.

    Raises:
        InputError: it means none of these, no node at all, or a node that is not in the graph.
    """
    masks = _masks(data)
    if text == "all":
        return list(range(int(data.num_nodes)))
    if text in masks:
        nodes = [int(node) for node in data[masks[text]].nonzero().flatten()]
        if not nodes:
            raise InputError(f"the mask {masks[text]} of this graph selects no nodes")
        return nodes
    places = _places(data)
    is_id = places is not None and text.strip() in places
    if text.startswith("@") and not is_id:
        return _read(Path(text[1:]), data, places)
    if is_id or re.fullmatch(r"[\d\s,-]+", text):
        return _listed(text, data, places, f"--nodes {text!r}")
    if _is_file(text):
        return _read(Path(text), data, places)
    if places is not None and re.search(r"[,\s]", text.strip()):
        return _listed(text, data, places, f"--nodes {text!r}")
    known = ", ".join(sorted({name for name in masks if not name.endswith("_mask")})) or "none"
    lists = "a list such as 1,2,5-9" if places is None else f"a node id of this graph ({_some(places)})"
    raise InputError(f"--nodes {text!r} is neither all, {lists}, a file, nor a mask of this graph ({known})")


def parse_edges(text: str, data: Data) -> tuple[tuple[int, int], ...]:
    """The edges that a list such as "3-17,4-9" means; by node ids of its own if the graph has them.

    Raises:
        InputError: a part of it is no pair of nodes.
    """
    places = _places(data) if text.strip() else None
    pairs = []
    if places is not None:
        for part in _parts(text, lambda part: bool(_ends(part, places))):
            ends = _ends(part, places)
            if len(ends) != 1:
                problem = "may be more than one edge" if ends else "is no edge"
                raise InputError(
                    f"{part!r} {problem}; edges are written as two node ids of this graph ({_some(places)}) with a - "
                    "between them"
                )
            pairs.append(ends[0])
        return tuple(pairs)
    for part in filter(None, re.split(r"[,\s]+", text)):
        match = re.fullmatch(r"(\d+)-(\d+)", part)
        if match is None:
            raise InputError(f"{part!r} is no edge; edges are written as two nodes, such as 3-17,4-9")
        pairs.append((int(match[1]), int(match[2])))
    return tuple(pairs)


def _ends(part: str, places: Places) -> list[tuple[int, int]]:
    """All that "a-b" can mean; ids may have a "-" in them."""
    splits = ((part[: dash.start()].strip(), part[dash.end() :].strip()) for dash in re.finditer("-", part))
    return [(places[u], places[v]) for u, v in splits if u in places and v in places]


def _places(data: Data) -> Places | None:
    ids = OwnIds.of(data)
    if ids is None:
        return None
    places: Places = {}
    for node in range(len(ids)):
        if places.setdefault(ids[node], node) != node:
            raise InputError(f"two nodes of this graph have the id {ids[node]!r}: its node_ids must differ")
    return places


def _some(places: Places) -> str:
    return ", ".join(list(places)[:3]) + (", …" if len(places) > 3 else "")


def _masks(data: Data) -> dict[str, str]:
    """The graph's masks of nodes, under their own names and those without "_mask"."""
    names: dict[str, str] = {}
    for key in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        value = data[key]
        if isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.shape == (data.num_nodes,):
            names[key] = key
            names.setdefault(key.removesuffix("_mask"), key)
    return names


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, for one
        return False


def _read(path: Path, data: Data, places: Places | None) -> list[int]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not a text file"
        raise InputError(f"cannot read nodes from {path}: {reason}") from problem
    own = places or {}
    text = "\n".join(line if line.strip() in own else line.partition("#")[0] for line in lines)
    return _listed(text, data, places, str(path))


def _listed(text: str, data: Data, places: Places | None, place: str) -> list[int]:
    own = places or {}
    nodes: dict[int, None] = {}
    for part in _parts(text, own.__contains__):
        if part in own:
            nodes[own[part]] = None
            continue
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None and places is None:
            raise InputError(f"{part!r} in {place} is no node; write nodes as 1,2,5-9")
        if match is None or (places is not None and match[2] is None):
            raise _no_id(part, place, own)
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise InputError(f"the range {part} in {place} is empty; write it as {last}-{first}")
        if places is not None:
            # One by one: the first that is missing ends it, however long the range.
            for number in range(first, last + 1):
                if str(number) not in own:
                    raise _no_id(str(number), place, own)
                nodes[own[str(number)]] = None
            continue
        # Before the range is made: it may be longer than the memory.
        count = int(data.num_nodes)
        if last >= count:
            raise InputError(f"node {last} is not in this graph (0 to {count - 1})")
        nodes.update(dict.fromkeys(range(first, last + 1)))
    if not nodes:
        raise InputError(f"{place} names no nodes")
    return list(nodes)


def _no_id(part: str, place: str, places: Places) -> InputError:
    return InputError(f"{part!r} in {place} is no node id of this graph, which has ids of its own: {_some(places)}")


def _parts(text: str, is_known: Callable[[str], bool]) -> Iterator[str]:
    """What stands between commas and spaces; an id with such a thing in it stays whole."""
    for line in text.splitlines():
        for piece in [line] if is_known(line.strip()) else line.split(","):
            yield from [piece.strip()] if is_known(piece.strip()) else piece.split()
