"""Nodes, edges, links and graphs as a command line or a file lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bad_files import check_refused, make_no_file
from butfor.cli.target_lists import parse_edges, parse_graphs, parse_links, parse_nodes
from butfor.datasets import GENERATORS
from butfor.errors import InputError
from cli_folders import RING_NODES, Refused, explain, two_rings
from graphs import small_graph

if TYPE_CHECKING:
    from pathlib import Path


def test_nodes_in_every_form(tmp_path: Path) -> None:
    data = GENERATORS["tree-cycles"](0)
    data.odd = torch.arange(871) % 2 == 1
    listed = tmp_path / "nodes.txt"
    listed.write_text("3, 4\n7-9  # a range\n\n4\n")
    test = data.test_mask.nonzero().flatten().tolist()
    for text, nodes in [
        ("5", [5]),
        ("9,2,5-7,6", [9, 2, 5, 6, 7]),
        (" 1 , 2 ", [1, 2]),
        ("test", test),
        ("test_mask", test),
        ("odd", list(range(1, 871, 2))),
        ("all", list(range(871))),
        (str(listed), [3, 4, 7, 8, 9]),
        (f"@{listed}", [3, 4, 7, 8, 9]),
    ]:
        assert parse_nodes(text, data) == nodes


def test_edges() -> None:
    data = GENERATORS["tree-cycles"](0)
    assert parse_edges("3-17,4-9", data) == ((3, 17), (4, 9))
    assert parse_edges("", data) == ()
    with pytest.raises(InputError, match="'3–17' is no edge"):
        parse_edges("3–17", data)


def own(*ids: object) -> Data:
    """A graph whose nodes have ids of their own."""
    count = len(ids)
    return Data(
        x=torch.ones(count, 1),
        edge_index=torch.zeros(2, 0, dtype=torch.long),
        node_ids=list(ids),
        test_mask=torch.arange(count) == 1,
    )


def test_nodes_by_their_own_ids(tmp_path: Path) -> None:
    data = own("acct_3", "acct_7", "New York", "a,b", "@me", "n-1", "#8")
    listed = tmp_path / "nodes.txt"
    listed.write_text("acct_7, n-1  # two\nNew York\na,b\n#8\n# nothing\n")
    for text, nodes in [
        ("acct_7", [1]),
        ("acct_7,acct_3,acct_7", [1, 0]),
        ("n-1 acct_3", [5, 0]),
        ("New York, acct_3", [2, 0]),
        ("a,b", [3]),
        ("@me", [4]),
        ("test", [1]),
        ("all", list(range(7))),
        (str(listed), [1, 5, 2, 3, 6]),
        (f"@{listed}", [1, 5, 2, 3, 6]),
        (",".join(["acct_3"] * 2000), [0]),  # too long for the name of a file
    ]:
        assert parse_nodes(text, data) == nodes, text
    numbers = own(5, 6, 7, 0)
    assert parse_nodes("0,5-7", numbers) == [3, 0, 1, 2]
    for text, message in [
        ("3", "'3' in --nodes '3' is no node id of this graph, which has ids of its own: 5, 6, 7, …"),
        ("6-99999999999999", "'8' in .* is no node id"),
        ("7-6", "range 7-6"),
        ("-1", "'-1' in .* is no node id"),
        ("5,x", "'x' in .* is no node id"),
        ("x", r"neither all, a node id of this graph \(5, 6, 7, …\), a file, nor a mask of this graph \(test\)"),
        (",", "names no nodes"),
    ]:
        with pytest.raises(InputError, match=message):
            parse_nodes(text, numbers)
    with pytest.raises(InputError, match="two nodes of this graph have the id 'a'"):
        parse_nodes("a", own("a", "a"))


def test_edges_by_their_own_ids() -> None:
    data = own("acct_3", "acct_7", "New York", "a", "b", "a-b", "-2")
    assert parse_edges("acct_3-acct_7, New York - a", data) == ((0, 1), (2, 3))
    assert parse_edges("a-b a-a-b,a--2", data) == ((3, 4), (3, 5), (3, 6))
    assert parse_edges("", data) == ()
    for text, message in [
        ("0-1", r"'0-1' is no edge; .* two node ids of this graph \(acct_3, acct_7, New York, …\)"),
        ("acct_3", "'acct_3' is no edge"),
    ]:
        with pytest.raises(InputError, match=message):
            parse_edges(text, data)
    with pytest.raises(InputError, match="'a-a-a' may be more than one edge"):
        parse_edges("a-a-a", own("a", "a-a"))


def test_links_in_every_form(tmp_path: Path) -> None:
    data = GENERATORS["tree-cycles"](0)
    listed = tmp_path / "links.txt"
    listed.write_text("3-5, 7-2  # two\n3-5\n")
    for text in ("3-5,7-2", "3-5 7-2 3-5", str(listed), f"@{listed}"):
        assert parse_links(text, data) == [(3, 5), (7, 2)]
    data.node_ids = [f"n-{node}" for node in range(data.num_nodes)]
    assert parse_links("n-3-n-5", data) == [(3, 5)]
    data.node_ids[0] = "@me"
    assert parse_links("@me-n-1", data) == [(0, 1)]


def test_graphs_in_every_form(tmp_path: Path) -> None:
    listed = tmp_path / "graphs.txt"
    listed.write_text("3-5 # some\n1\n")
    for text, numbers in [
        ("all", list(range(9))),
        ("test", [2, 7]),
        ("8,1-3,2", [8, 1, 2, 3]),
        (str(listed), [3, 4, 5, 1]),
        (f"@{listed}", [3, 4, 5, 1]),
    ]:
        assert parse_graphs(text, 9, (7, 2)) == numbers


def test_lists_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    for content in (b"", b"\xff\xfe", b"\x00", b"9" * 5000, b"0-" + b"9" * 5000, b"99999999999999999999", b"a", b"1-0"):
        path.write_bytes(content)
        check_refused(lambda: parse_nodes(f"@{path}", small_graph()), InputError, tmp_path, "")
        check_refused(lambda: parse_graphs(f"@{path}", 3, ()), InputError, tmp_path, "")
        if content != b"1-0":  # no range, but a link
            check_refused(lambda: parse_links(f"@{path}", small_graph()), InputError, tmp_path, "")
    check_refused(lambda: parse_nodes("@a\0b", small_graph()), InputError, tmp_path, "a\0b")
    check_refused(lambda: parse_edges("1-" + "9" * 5000, small_graph()), InputError, tmp_path, "999")


@pytest.mark.parametrize("kind", ["endless", "larger than memory", "folder"])  # a list may come through a pipe
def test_lists_that_are_no_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "nodes.txt"
    make_no_file(path, kind)
    check_refused(lambda: parse_nodes(f"@{path}", small_graph()), InputError, tmp_path, "nodes.txt")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("24", r"node 24 is not in this graph \(0 to 23\)"),
        ("3,5-99999999999999", r"node 99999999999999 is not in this graph"),
        ("0-99999999999999999999", "99999.* is too large a number for a node"),
        ("-1", "'-1' in .* is no node"),
        ("9-3", "range 9-3"),
        ("", "neither all"),
        (",", "names no nodes"),
        ("valid", r"nor a mask of this graph \(test, train\)"),
        ("@missing.txt", "cannot read missing.txt: No such file"),
    ],
)
def test_nodes_that_are_not_there(refused: Refused, rings: Path, nodes: str, message: str) -> None:
    refused(explain(rings, f"--nodes={nodes}", "--out", str(rings / "new.jsonl")), message)


def test_files_of_nodes(refused: Refused, rings: Path, tmp_path: Path) -> None:
    listed = tmp_path / "nodes.txt"
    for content, message in [
        (b"1 2 x", "'x' in .*nodes.txt is no node"),
        (b"1\n500\n", "node 500 is not in this graph"),
        (b"# none\n", "nodes.txt names no nodes"),
        (b"\xff\xfe\x00", "it is not a text file"),
    ]:
        listed.write_bytes(content)
        refused(explain(rings, "--nodes", str(listed)), message)


def test_a_mask_that_selects_nothing(refused: Refused, rings: Path, tmp_path: Path) -> None:
    graph = tmp_path / "graph.npz"
    np.savez(graph, **two_rings(val_mask=np.zeros(RING_NODES, dtype=bool)))
    refused(explain(rings, "--graph", str(graph), "--nodes", "val"), "the mask val_mask .* selects no nodes")
