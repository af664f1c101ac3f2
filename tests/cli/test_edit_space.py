"""Which edits are allowed, as a JSON file says it."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch_geometric.data import Data

from bad_files import LARGE, NOT_JSON, check_refused, make_no_file
from butfor.cli import main
from butfor.cli.edit_space import read_space
from butfor.datasets import load_graph, save_graph
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.runs import read_results
from graphs import small_graph

if TYPE_CHECKING:
    from pathlib import Path

    from cli_folders import Refused


Capture = pytest.CaptureFixture[str]


def test_a_space_is_what_its_file_says(tasks: Path, tmp_path: Path) -> None:
    rules = {
        "allowed": [[0, 1], [1, 2]],
        "costs": [[[0, 1], 2.5], ["pair", 3]],
        "groups": {"pair": [[2, 3], [3, 4]]},
        "add": {"hops": 2, "cost": 2},
        "features": [{"values": "flip", "nodes": [0, 2]}, {"between": [0, 1], "columns": [1]}],
        "max_edits": 2,
        "keep_connected": True,
    }
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(rules))
    space = read_space(path, "4-5", load_graph("graph.npz"))
    assert list(space.protected) == [(4, 5)]
    assert space == EditSpace(
        protected=[(4, 5)],
        allowed=[(0, 1), (1, 2)],
        costs={(0, 1): 2.5, "pair": 3},
        groups={"pair": [(2, 3), (3, 4)]},
        add=Within(hops=2, cost=2),
        features=[Features(nodes=[0, 2]), Features(between=[0, 1], columns=[1])],  # type: ignore[arg-type]
        max_edits=2,
        keep_connected=True,
    )
    path.write_text(json.dumps({"protected": [[1, 2]]}))
    assert list(read_space(path, "4-5", load_graph("graph.npz")).protected) == [(1, 2), (4, 5)]
    assert read_space(None, "", None) == EditSpace()


def test_a_space_by_own_ids(tmp_path: Path) -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), node_ids=["a", 7, "c-d"])
    path = tmp_path / "rules.json"
    path.write_text('{"protected": [["a", 7]], "add": [["c-d", "a"]], "features": {"nodes": ["7"]}}')
    space = read_space(path, "a-c-d", data)
    assert list(space.protected) == [(0, 1), (0, 2)]
    assert space.add == ((2, 0),)
    assert list(space.features) == [Features(nodes=[1])]
    path.write_text('{"protected": [[0, 1]]}')
    with pytest.raises(InputError, match=r"protected names 0, which is no node id of this graph \(a, 7, c-d"):
        read_space(path, "", data)


def test_additions_and_features_are_explained_and_shown(tasks: Path, tmp_path: Path, capsys: Capture) -> None:
    rules, path = tmp_path / "rules.json", tmp_path / "edits.jsonl"
    rules.write_text('{"delete": false, "add": {"hops": 2}, "features": {"values": "flip", "within": 1}}')
    source = ["--model", "task_models:Nodes", "--graph", "graph.npz"]
    run = ["explain", *source, "--nodes", "all", "--space", str(rules), "--out", str(path)]
    assert main(run) == 0
    found = [result for result in read_results(path) if result.found]
    assert any(result.changes for result in found)
    assert not any(result.removed_edges for result in found)
    capsys.readouterr()
    assert main(["show", str(path), "--node", str(found[0].target)]) == 0
    assert re.search(r"^size +(edges added|features changed): ", capsys.readouterr().out, flags=re.MULTILINE)
    assert main(["evaluate", str(path), *source]) == 0
    # The same file under other rules is refused.
    rules.write_text('{"delete": false, "add": {"hops": 1}}')
    assert main(run) == 2
    assert "another edit space" in capsys.readouterr().err


def test_rules_for_graphs(tasks: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    first = next(result for result in read_results("done.jsonl") if result.found)
    removed = [first.name(node) for node in first.removed_edges[0]]
    (tmp_path / "rules.json").write_text(json.dumps({"protected": [removed]}))
    one = ["explain", "--checkpoint", "run", "--graphs", str(first.target)]
    assert main([*one, "--space", str(tmp_path / "rules.json"), "--out", str(path)]) == 0
    assert first.removed_edges[0] not in read_results(path)[0].removed_edges
    (tmp_path / "rules.json").write_text('{"max_edits": 1}')
    few = tmp_path / "few.jsonl"
    assert main([*one[:-1], "0-9", "--space", str(tmp_path / "rules.json"), "--out", str(few)]) == 0
    assert all(result.size in (None, 1) for result in read_results(few))


def test_rules_by_attributes_of_the_graph(tasks: Path, tmp_path: Path) -> None:
    data = load_graph("graph.npz")
    low, high = data.edge_index.min(0).values, data.edge_index.max(0).values
    data.price = 1.0 + (low + high) % 3
    data.is_frozen = low == 1
    save_graph(data, tmp_path / "priced.npz")
    source = ["explain", "--model", "task_models:Nodes", "--graph", str(tmp_path / "priced.npz"), "--nodes", "all"]
    rules, path = tmp_path / "rules.json", tmp_path / "found.jsonl"
    rules.write_text('{"costs": "price", "protected": ["is_frozen"]}')
    assert main([*source, "--space", str(rules), "--protect", "3-4", "--out", str(path)]) == 0
    found = [result for result in read_results(path) if result.found]
    assert found
    for result in found:
        assert result.cost == sum(1.0 + (u + v) % 3 for u, v in result.removed_edges)
        assert not {(1, 2), (1, 11), (3, 4)} & set(result.removed_edges)


def test_rules_that_name_nodes_of_several_graphs(refused: Refused, tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('{"features": {"nodes": [0]}}')
    argv = ["explain", "--checkpoint", "run", "--graphs", "0,1", "--space", str(tmp_path / "rules.json")]
    refused(argv, "features names nodes, but several graphs are explained")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read .*rules.json: No such file"),
        ("{", "rules.json cannot be read as JSON"),
        ("[1]", "must be an object"),
        ('{"protect": []}', "an edit space has no field 'protect'"),
        ('{"add": {"hop": 1}}', "add has no field 'hop'"),
        ('{"add": {"hops": "1"}}', "hops is '1'; give a whole number"),
        ('{"delete": "no"}', "delete is 'no'; give True or False"),
        ('{"max_edits": "3"}', "max_edits is '3'; give a whole number"),
        ('{"max_edits": 0}', "max_edits is 0; give a whole number of at least 1"),
        ('{"features": {"between": [1]}}', r"between is \[1\]; give two numbers, the ends of a range"),
        ('{"features": {"columns": ["a"]}}', "one of the columns of features is 'a'; give a whole number"),
        ('{"features": {"columns": [9]}}', r"feature 9 is not in this graph \(0 to 2\)"),
        ('{"features": {"nodes": [0.5]}}', "features names 0.5, but the nodes of this graph are numbers"),
        ('{"features": "flip"}', "features has 'flip'; give its fields by name, such as {'values': 'flip'}"),
        ('{"costs": [[[0, 1], "x"]]}', r"costs gives \[0, 1\] the cost 'x'; give a number"),
        ('{"costs": [[[0, 1], -2]]}', "the cost of edge 0–1 is -2; give a positive number"),
        ('{"costs": [[0, 1]]}', "costs has 0; an edge is written as its two nodes"),
        ('{"costs": {"pair": 2}}', "costs names the group 'pair', which is not among the groups"),
        ('{"carries": [1]}', r"carries is \[1\]; give numbers or lists of them by field, such as {'edge_attr'"),
        ('{"protected": [[0.5, 1]]}', "protected names 0.5"),
        ('{"protected": [[0, 5]]}', "protected names the edge 0–5, which is not in this graph"),
        ('{"protected": null}', "protected is None; give a list"),
        ('{"allowed": "all"}', "allowed names the edge attribute 'all', which this graph has not"),
        ('{"protected": ["x"]}', r"protected, the attribute 'x', has shape \(12, 3\); give one value for each"),
        ('{"costs": "price"}', "costs names the edge attribute 'price', which this graph has not"),
        ('{"allowed": [[0, 99]]}', r"node 99 is not in this graph \(0 to 11\)"),
        ('{"groups": [[[0, 1, 2]]]}', r"groups has \[0, 1, 2\]; an edge is written as its two nodes"),
        ('{"add": [[0, 1]]}', "add names 0–1, which is an edge of this graph already"),
    ],
)
def test_spaces_that_make_no_sense(
    refused: Refused, tasks: Path, tmp_path: Path, content: str | None, message: str
) -> None:
    rules = tmp_path / "rules.json"
    if content is not None:
        rules.write_text(content)
    argv = ["explain", "--model", "task_models:Nodes", "--graph", "graph.npz", "--nodes", "3"]
    refused([*argv, "--space", str(rules), "--out", "new.jsonl"], message)


RULES: list[Any] = [
    {"max_edits": LARGE},
    {"max_edits": 1.5},
    {"max_edits": True},
    {"hops": 1},
    {"add": {"hops": LARGE}},
    {"add": {"hops": 1, "cost": LARGE}},
    {"add": {"add": {"hops": 1}}},
    {"add": {"hops": 0}},
    {"add": [[0, LARGE]]},
    {"add": [[0]]},
    {"add": 3},
    {"protected": [[0, 1, 2]]},
    {"protected": {"a": 1}},
    {"protected": [[0, 1.5]]},
    {"protected": [[True, 1]]},
    {"allowed": 3},
    {"groups": 3},
    {"groups": {"a": 3}},
    {"costs": [[[0, 1], "2"]]},
    {"costs": [[[0, 1], LARGE]]},
    {"costs": [3]},
    {"costs": {"a": None}},
    {"features": {"between": [0, 1], "steps": 10**8}},
    {"features": {"between": [0, LARGE]}},
    {"features": {"between": [0]}},
    {"features": {"between": [-1.7e308, 1.7e308]}},
    {"features": {"values": [LARGE]}},
    {"features": {"values": {"a": 1}}},
    {"features": {"columns": [LARGE]}},
    {"features": {"nodes": [1.5]}},
    {"features": [3]},
    {"features": {"colour": 1}},
    {"relations": [["a", 1, "b"]]},
    {"carries": {"edge_attr": [LARGE]}},
    {"carries": [1]},
    {"delete": 1},
    {"keep_connected": "yes"},
    {"colour": "red"},
]


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: json.dumps(rules)[:40])
def test_rules_that_are_not_what_they_must_be(tmp_path: Path, rules: Any) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(rules))
    check_refused(lambda: read_space(path, "", small_graph()), InputError, tmp_path, "rules.json")


ODD: list[Any] = [
    *(True, -1, 1.5, LARGE, "3", "all", ["a"], [None], [LARGE], [[0, LARGE]], [[0.5, 1]], [[0, 1, 2]]),
    *({"a": None}, {"a": ["x"]}, {"a": LARGE}, [[[0, 1], "2"]], [[[0, 1], None]], [["a", 1, "b"]]),
]
# What a field does take; that nothing can be done with -1 edits, and that a graph has no attribute of some name, is
# said when the rules are used.
TAKEN: dict[str, list[Any]] = {
    **{"delete": [True], "keep_connected": [True], "max_edits": [-1], "cost": [1.5]},
    **{"protected": ["3", "all", ["a"]], "allowed": ["3", "all", ["a"]], "costs": ["3", "all"]},
}
TAKEN["node_type"] = ["3", "all"]  # any text may be the name of a type
NESTED = {"add": Within, "features": Features}


@pytest.mark.parametrize("kind", [EditSpace, Within, Features])
def test_every_field_refuses_every_value_of_another_kind(tmp_path: Path, kind: type) -> None:
    """What is wrong must not wait for the middle of a search to be noticed."""
    path = tmp_path / "rules.json"
    outer = next((name for name, inner in NESTED.items() if inner is kind), None)
    for name in (item.name for item in fields(kind)):
        for value in ODD:
            path.write_text(json.dumps({name: value} if outer is None else {outer: {name: value}}))
            if value in TAKEN.get(name, []):
                read_space(path, "", small_graph())
                continue
            check_refused(lambda: read_space(path, "", small_graph()), InputError, tmp_path, "rules.json")


@pytest.mark.parametrize("case", NOT_JSON)
def test_rules_that_are_no_json_object(tmp_path: Path, case: str) -> None:
    (tmp_path / "rules.json").write_bytes(NOT_JSON[case])
    check_refused(lambda: read_space(tmp_path / "rules.json", "", None), InputError, tmp_path, "rules.json")


@pytest.mark.parametrize("kind", ["endless", "larger than memory", "folder"])  # rules may come through a pipe
def test_rules_that_are_no_file(tmp_path: Path, kind: str) -> None:
    make_no_file(tmp_path / "rules.json", kind)
    check_refused(lambda: read_space(tmp_path / "rules.json", "", None), InputError, tmp_path, "rules.json")
