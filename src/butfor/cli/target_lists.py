"""Lists of nodes, edges, links and graphs, as a user writes them."""

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

__all__ = ["parse_edges", "parse_graphs", "parse_links", "parse_nodes", "positions_by_id"]

# More digits than the number of any node has.
_MAX_DIGITS = 18

# The position of each node in the graph by its own id.
PositionsById = dict[str, int]


def parse_nodes(text: str, data: Data) -> list[int]:
    """The nodes that ``text`` stands for, each once, in the order given.

    The text is "all"; the name of a mask, with or without its "_mask"; a list such as "1,2,5-9"; or a file of such
    lists, as a path or as "@path". If the nodes have ids of their own, lists are of these ids.

    Raises:
        InputError: it is none of these, stands for no nodes, or names a node that is not in the graph.
    """
    masks = _masks(data)
    if text == "all":
        return list(range(int(data.num_nodes)))
    if text in masks:
        nodes = [int(node) for node in data[masks[text]].nonzero().flatten()]
        if not nodes:
            raise InputError(f"the mask {masks[text]} of this graph selects no nodes")
        return nodes
    by_id = positions_by_id(data)
    is_id = by_id is not None and text.strip() in by_id
    if text.startswith("@") and not is_id:
        return _nodes_from_file(Path(text[1:]), data, by_id)
    if is_id or re.fullmatch(r"[\d\s,-]+", text):
        return _parse_list(text, int(data.num_nodes), by_id, f"--nodes {text!r}")
    if _is_file(text):
        return _nodes_from_file(Path(text), data, by_id)
    if by_id is not None and re.search(r"[,\s]", text.strip()):
        return _parse_list(text, int(data.num_nodes), by_id, f"--nodes {text!r}")
    known = ", ".join(sorted({name for name in masks if not name.endswith("_mask")})) or "none"
    lists = "a list such as 1,2,5-9" if by_id is None else f"a node id of this graph ({_first_ids(by_id)})"
    raise InputError(f"--nodes {text!r} is neither all, {lists}, a file, nor a mask of this graph ({known})")


def parse_edges(text: str, data: Data, what: str = "edge") -> tuple[tuple[int, int], ...]:
    """The edges (or links) in a list such as "3-17,4-9", by the nodes' own ids if they have any.

    Raises:
        InputError: a part of it is not a pair of nodes.
    """
    by_id = positions_by_id(data) if text.strip() else None
    pairs = []
    if by_id is not None:
        for part in _split(text, lambda part: bool(_possible_pairs(part, by_id))):
            ends = _possible_pairs(part, by_id)
            if len(ends) != 1:
                problem = f"may be more than one {what}" if ends else f"is no {what}"
                raise InputError(
                    f"{shown(part)} {problem}; {what}s are written as two node ids of this graph ({_first_ids(by_id)}) "
                    "with a - between them"
                )
            pairs.append(ends[0])
        return tuple(pairs)
    for part in filter(None, re.split(r"[,\s]+", text)):
        match = re.fullmatch(r"(\d+)-(\d+)", part)
        if match is None:
            raise InputError(f"{shown(part)} is no {what}; {what}s are written as two nodes, such as 3-17,4-9")
        pairs.append((_to_number(match[1], what), _to_number(match[2], what)))
    return tuple(pairs)


def parse_links(text: str, data: Data) -> list[Pair]:
    """The links in a list such as "3-17,4-9", or in a file of such lists, each once.

    Raises:
        InputError: a part of it is not a pair of nodes of this graph, or there are no pairs.
    """
    place, by_id = f"--links {text!r}", positions_by_id(data)
    is_link = by_id is not None and bool(_possible_pairs(text, by_id))
    if not is_link and (text.startswith("@") or _is_file(text)):
        place = text.removeprefix("@")
        text = "\n".join(line.partition("#")[0] for line in _read_lines(Path(place), "links"))
    pairs = [Pair(*ends) for ends in parse_edges(text, data, "link")]
    for pair in pairs:
        for node in pair:
            _check_number(node, int(data.num_nodes), "node")
    if not pairs:
        raise InputError(f"{place} names no links; write them as two nodes each, such as 3-17,4-9")
    return list(dict.fromkeys(pairs))


def parse_graphs(text: str, count: int, test: Collection[int]) -> list[int]:
    """The numbers of the graphs that ``text`` stands for.

    Args:
        text: "all", "test", a list such as "1,2,5-9", or a file of such lists, as a path or as "@path".
        count: how many graphs there are.
        test: the numbers of the graphs that were kept for testing, if known.

    Raises:
        InputError: it is none of these, or names a graph that does not exist.
    """
    if text == "all":
        return list(range(count))
    if text == "test" and test:
        return sorted(test)
    if re.fullmatch(r"[\d\s,-]+", text):
        return _parse_list(text, count, None, f"--graphs {text!r}", "graph")
    if text.startswith("@") or _is_file(text):
        path = Path(text.removeprefix("@"))
        lines = [line.partition("#")[0] for line in _read_lines(path, "graphs")]
        return _parse_list("\n".join(lines), count, None, str(path), "graph")
    if text == "test":
        raise InputError(
            "which graphs were left for testing is not known here: give --graphs all, or a list such as 1,2,5-9"
        )
    raise InputError(f"--graphs {text!r} is neither all, test, a list such as 1,2,5-9, nor a file")


def _possible_pairs(part: str, by_id: PositionsById) -> list[tuple[int, int]]:
    """All pairs of nodes that "a-b" can stand for: ids may contain a "-" themselves."""
    splits = ((part[: dash.start()].strip(), part[dash.end() :].strip()) for dash in re.finditer("-", part))
    return [(by_id[u], by_id[v]) for u, v in splits if u in by_id and v in by_id]


def positions_by_id(data: Data) -> PositionsById | None:
    """The position of each node by its own id; None if the nodes have no ids.

    Raises:
        InputError: two nodes have the same id.
    """
    ids = OwnIds.of(data)
    if ids is None:
        return None
    by_id: PositionsById = {}
    for node in range(len(ids)):
        if by_id.setdefault(ids[node], node) != node:
            raise InputError(f"two nodes of this graph have the id {ids[node]!r}: its node_ids must differ")
    return by_id


def _first_ids(by_id: PositionsById) -> str:
    return ", ".join(list(by_id)[:3]) + (", …" if len(by_id) > 3 else "")


def _masks(data: Data) -> dict[str, str]:
    """The graph's node masks: their names, by themselves and by the same name without "_mask"."""
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
    except (OSError, ValueError):  # the text is too long for a path, for example
        return False


def _nodes_from_file(path: Path, data: Data, by_id: PositionsById | None) -> list[int]:
    own = by_id or {}
    lines = [line if line.strip() in own else line.partition("#")[0] for line in _read_lines(path, "nodes")]
    return _parse_list("\n".join(lines), int(data.num_nodes), by_id, str(path))


def _read_lines(path: Path, what: str) -> list[str]:
    try:
        return read_bytes(path, InputError, pipe=True).decode("utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise InputError(f"cannot read {what} from {path}: it is not a text file") from problem


def _parse_list(text: str, count: int, by_id: PositionsById | None, place: str, what: str = "node") -> list[int]:
    """The nodes or graphs of a list. ``place`` says in messages where the list is, and ``what`` it lists."""
    own = by_id or {}
    nodes: dict[int, None] = {}
    for part in _split(text, own.__contains__):
        if part in own:
            nodes[own[part]] = None
            continue
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None and by_id is None:
            raise InputError(f"{shown(part)} in {place} is no {what}; write {what}s as 1,2,5-9")
        if match is None or (by_id is not None and match[2] is None):
            raise _unknown_id(part, place, own)
        first, last = _to_number(match[1], what), _to_number(match[2] or match[1], what)
        if first > last:
            raise InputError(f"the range {part} in {place} is empty; write it as {last}-{first}")
        if by_id is not None:
            # One by one, so that the first missing number ends the loop, however long the range is.
            for number in range(first, last + 1):
                if str(number) not in own:
                    raise _unknown_id(str(number), place, own)
                nodes[own[str(number)]] = None
            continue
        # Before the range is built, because it may not fit into memory.
        _check_number(last, count, what)
        nodes.update(dict.fromkeys(range(first, last + 1)))
    if not nodes:
        raise InputError(f"{place} names no {what}s")
    return list(nodes)


def _to_number(digits: str, what: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise InputError(f"{digits[:_MAX_DIGITS]}… is too large a number for a {what}")
    return int(digits)


def _check_number(number: int, count: int, what: str) -> None:
    if number >= count:
        where = "in this graph" if what == "node" else "there"
        raise InputError(f"{what} {number} is not {where} (0 to {count - 1})")


def _unknown_id(part: str, place: str, by_id: PositionsById) -> InputError:
    return InputError(
        f"{shown(part)} in {place} is no node id of this graph, which has ids of its own: {_first_ids(by_id)}"
    )


def _split(text: str, is_known: Callable[[str], bool]) -> Iterator[str]:
    """Split at commas and spaces, except inside a known id that contains them."""
    for line in text.splitlines():
        for piece in [line] if is_known(line.strip()) else line.split(","):
            yield from [piece.strip()] if is_known(piece.strip()) else piece.split()
