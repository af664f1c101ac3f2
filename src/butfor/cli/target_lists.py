"""Nodes, edges, links and graphs as a user writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from butfor.boundary.json_values import shown
from butfor.boundary.reading import read_bytes
from butfor.errors import InputError
from butfor.graph.node_names import OwnIds
from butfor.problem.target import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from torch_geometric.data import Data

__all__ = ["parse_edges", "parse_graphs", "parse_links", "parse_nodes", "places_of"]

# No graph has so many nodes that a number needs more.
_DIGITS = 18

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
    places = places_of(data)
    is_id = places is not None and text.strip() in places
    if text.startswith("@") and not is_id:
        return _from_file(Path(text[1:]), data, places)
    if is_id or re.fullmatch(r"[\d\s,-]+", text):
        return _listed(text, int(data.num_nodes), places, f"--nodes {text!r}")
    if _is_file(text):
        return _from_file(Path(text), data, places)
    if places is not None and re.search(r"[,\s]", text.strip()):
        return _listed(text, int(data.num_nodes), places, f"--nodes {text!r}")
    known = ", ".join(sorted({name for name in masks if not name.endswith("_mask")})) or "none"
    lists = "a list such as 1,2,5-9" if places is None else f"a node id of this graph ({_some(places)})"
    raise InputError(f"--nodes {text!r} is neither all, {lists}, a file, nor a mask of this graph ({known})")


def parse_edges(text: str, data: Data, what: str = "edge") -> tuple[tuple[int, int], ...]:
    """The edges (or links) that a list such as "3-17,4-9" means; by node ids of its own if the graph has them.

    Raises:
        InputError: a part of it is no pair of nodes.
    """
    places = places_of(data) if text.strip() else None
    pairs = []
    if places is not None:
        for part in _parts(text, lambda part: bool(_ends(part, places))):
            ends = _ends(part, places)
            if len(ends) != 1:
                problem = f"may be more than one {what}" if ends else f"is no {what}"
                raise InputError(
                    f"{shown(part)} {problem}; {what}s are written as two node ids of this graph ({_some(places)}) "
                    "with a - between them"
                )
            pairs.append(ends[0])
        return tuple(pairs)
    for part in filter(None, re.split(r"[,\s]+", text)):
        match = re.fullmatch(r"(\d+)-(\d+)", part)
        if match is None:
            raise InputError(f"{shown(part)} is no {what}; {what}s are written as two nodes, such as 3-17,4-9")
        pairs.append((_number(match[1], what), _number(match[2], what)))
    return tuple(pairs)


def parse_links(text: str, data: Data) -> list[Pair]:
    """The pairs of nodes that a list such as "3-17,4-9" means, or a file of such lists, each once.

    Raises:
        InputError: a part of it is no pair of nodes of this graph, or there is none.
    """
    place, places = f"--links {text!r}", places_of(data)
    is_link = places is not None and bool(_ends(text, places))
    if not is_link and (text.startswith("@") or _is_file(text)):
        place = text.removeprefix("@")
        text = "\n".join(line.partition("#")[0] for line in _lines(Path(place), "links"))
    pairs = [Pair(*ends) for ends in parse_edges(text, data, "link")]
    for pair in pairs:
        for node in pair:
            _check_number(node, int(data.num_nodes), "node")
    if not pairs:
        raise InputError(f"{place} names no links; write them as two nodes each, such as 3-17,4-9")
    return list(dict.fromkeys(pairs))


def parse_graphs(text: str, count: int, test: Collection[int]) -> list[int]:
    """The numbers of the graphs that ``text`` means, of ``count``; ``test`` are those a model was tested on, if known.

    "all", "test", a list such as "1,2,5-9", or a file of such lists, as a path or as "@path".

    Raises:
        InputError: it means none of these, or a graph that is not there.
    """
    if text == "all":
        return list(range(count))
    if text == "test" and test:
        return sorted(test)
    if re.fullmatch(r"[\d\s,-]+", text):
        return _listed(text, count, None, f"--graphs {text!r}", "graph")
    if text.startswith("@") or _is_file(text):
        path = Path(text.removeprefix("@"))
        lines = [line.partition("#")[0] for line in _lines(path, "graphs")]
        return _listed("\n".join(lines), count, None, str(path), "graph")
    if text == "test":
        raise InputError("which graphs were left for testing is not known here: give --graphs all, or such as 1,2,5-9")
    raise InputError(f"--graphs {text!r} is neither all, test, a list such as 1,2,5-9, nor a file")


def _ends(part: str, places: Places) -> list[tuple[int, int]]:
    """All that "a-b" can mean; ids may have a "-" in them."""
    splits = ((part[: dash.start()].strip(), part[dash.end() :].strip()) for dash in re.finditer("-", part))
    return [(places[u], places[v]) for u, v in splits if u in places and v in places]


def places_of(data: Data) -> Places | None:
    """The position of each node by the id it has of its own; None where nodes have none.

    Raises:
        InputError: two nodes have the same id.
    """
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


def _from_file(path: Path, data: Data, places: Places | None) -> list[int]:
    own = places or {}
    lines = [line if line.strip() in own else line.partition("#")[0] for line in _lines(path, "nodes")]
    return _listed("\n".join(lines), int(data.num_nodes), places, str(path))


def _lines(path: Path, what: str) -> list[str]:
    try:
        return read_bytes(path, InputError, pipe=True).decode("utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise InputError(f"cannot read {what} from {path}: it is not a text file") from problem


def _listed(text: str, count: int, places: Places | None, place: str, what: str = "node") -> list[int]:
    own = places or {}
    nodes: dict[int, None] = {}
    for part in _parts(text, own.__contains__):
        if part in own:
            nodes[own[part]] = None
            continue
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None and places is None:
            raise InputError(f"{shown(part)} in {place} is no {what}; write {what}s as 1,2,5-9")
        if match is None or (places is not None and match[2] is None):
            raise _no_id(part, place, own)
        first, last = _number(match[1], what), _number(match[2] or match[1], what)
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
        _check_number(last, count, what)
        nodes.update(dict.fromkeys(range(first, last + 1)))
    if not nodes:
        raise InputError(f"{place} names no {what}s")
    return list(nodes)


def _number(digits: str, what: str) -> int:
    if len(digits) > _DIGITS:
        raise InputError(f"{digits[:_DIGITS]}… is too large a number for a {what}")
    return int(digits)


def _check_number(number: int, count: int, what: str) -> None:
    if number >= count:
        where = "in this graph" if what == "node" else "there"
        raise InputError(f"{what} {number} is not {where} (0 to {count - 1})")


def _no_id(part: str, place: str, places: Places) -> InputError:
    return InputError(
        f"{shown(part)} in {place} is no node id of this graph, which has ids of its own: {_some(places)}"
    )


def _parts(text: str, is_known: Callable[[str], bool]) -> Iterator[str]:
    """What stands between commas and spaces; an id with such a thing in it stays whole."""
    for line in text.splitlines():
        for piece in [line] if is_known(line.strip()) else line.split(","):
            yield from [piece.strip()] if is_known(piece.strip()) else piece.split()
