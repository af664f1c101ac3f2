"""The report as a file: complete or not there, of the graph and model that were explained, and safe."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

import butfor
from butfor.errors import InputError
from butfor.pages import report as module
from butfor.runs import Folder, Store
from butfor.runs import Run as RunInfo
from page_runs import NASTY, Run, content, edited, library, links, molecules, of_every_status, reread, trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUNS: list[Callable[[], Run]] = [trees, library, links, molecules, edited]


@pytest.mark.parametrize("run", RUNS)
def test_results_from_a_file_give_the_same_page(run: Callable[[], Run], tmp_path: Path) -> None:
    results, model, data = run().results, run().model, run().data
    first = butfor.report(results, tmp_path / "first.html")
    again = butfor.report(iter(reread(results)), str(tmp_path / "again.html"), data=data, model=model)
    assert content(first) == content(again)
    assert content(first)["note"] == ""
    assert [record["sentence"] for record in content(first)["results"]] == [str(result) for result in results]
    alone = content(butfor.report(reread(results), tmp_path / "alone.html"))
    assert alone["note"] == module.NO_GRAPH
    assert [record["edits"] for record in alone["results"]] != []


def test_a_results_own_graph_is_left_as_it_was(tmp_path: Path) -> None:
    run = molecules()
    before = [copy.copy(graph).to_dict() for graph in run.data]
    was = run.model.training
    butfor.report(reread(run.results), tmp_path / "report.html", data=run.data, model=run.model)
    assert run.model.training is was
    for graph, then in zip(run.data, before, strict=True):
        assert graph.to_dict().keys() == then.keys()
        assert torch.equal(graph.edge_index, then["edge_index"])


@pytest.mark.parametrize(
    ("results", "noun"),
    [(trees().results, "node"), (links().results, "link"), (molecules().results, "graph")],
    ids=["nodes", "links", "graphs"],
)
def test_what_the_targets_are_called(results: tuple[butfor.Counterfactual, ...], noun: str, tmp_path: Path) -> None:
    assert content(butfor.report(results, tmp_path / "report.html"))["noun"] == noun


def test_targets_of_several_tasks(tmp_path: Path) -> None:
    page = content(butfor.report([*links().results, *molecules().results], tmp_path / "report.html"))
    assert page["noun"] == "target"


def test_every_status_is_in_it(tmp_path: Path) -> None:
    page = content(butfor.report(of_every_status(), tmp_path / "report.html"))
    assert [record["status"] for record in page["results"]] == [status.value for status in butfor.Status]


@pytest.mark.parametrize("name", NASTY)
def test_names_are_text(name: str, tmp_path: Path) -> None:
    result = trees().results[0]
    named = replace(result, names=((result.target, name),), before=replace(result.before, name=name), note=name)
    path = butfor.report([named], tmp_path / "report.html", title=name)
    plain = path.read_text("utf-8")
    assert plain.count("<script") == plain.count("</script>") == 2
    assert "<img" not in plain
    assert "\u2028" not in plain
    assert content(path)["results"][0]["note"] == content(path)["title"]


def test_what_is_not_a_number_stays_out(tmp_path: Path) -> None:
    result = trees().results[0]
    strange = replace(result, before=replace(result.before, probability=float("nan")))
    assert "NaN" not in json.dumps(content(butfor.report([strange], tmp_path / "report.html")))


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"report\.html exists already; choose another file, or replace it"):
        butfor.report(trees().results, path)
    assert path.read_text() == "mine"
    butfor.report(trees().results, path, replace=True)
    assert path.read_text().startswith("<!doctype html>")


def test_a_file_is_never_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")

    def broken() -> object:
        yield trees().results[0]
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        butfor.report(broken(), path, replace=True)  # type: ignore[arg-type]
    monkeypatch.setattr("os.fsync", _no_space)
    with pytest.raises(InputError, match=r"cannot write .*report\.html: No space left on device"):
        butfor.report(trees().results, path, replace=True)
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [("report.html", "mine")]


def _no_space(handle: int) -> None:
    raise OSError(28, "No space left on device")


def test_where_no_page_can_be_written(tmp_path: Path) -> None:
    for name, message in [
        ("report.pdf", "is no page: its name must end in .html"),
        ("nowhere/report.html", "there is no folder"),
    ]:
        with pytest.raises(InputError, match=message):
            butfor.report(trees().results, tmp_path / name)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match="exists already"):
        butfor.report(trees().results, tmp_path / "folder.html", replace=True)


def test_no_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no results to report on"):
        butfor.report([], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_results_of_another_graph_or_model_are_refused(tmp_path: Path) -> None:
    run, path = trees(), tmp_path / "report.html"
    other = copy.copy(run.data)
    other.x = run.data.x + 1
    with pytest.raises(InputError, match=r"the result of node 600 is of another graph \(.* give the graph that"):
        butfor.report(reread(run.results), path, data=other, model=run.model)
    changed = copy.deepcopy(run.model)
    with torch.no_grad():
        next(changed.parameters()).add_(1)
    with pytest.raises(InputError, match="the result of node 600 is of another model"):
        butfor.report(reread(run.results), path, data=run.data, model=changed)
    graphs = molecules()
    with pytest.raises(InputError, match="the result of graph 1 is of another graph"):
        butfor.report(reread(graphs.results), path, data=[graphs.data[0], trees().data], model=graphs.model)
    with pytest.raises(InputError, match="graph 1 is not among the 1 graphs that were given"):
        butfor.report(reread(graphs.results), path, data=graphs.data[:1], model=graphs.model)
    with pytest.raises(InputError, match="node 600 is not among the 2 graphs"):
        butfor.report(reread(run.results), path, data=graphs.data, model=run.model)
    assert not path.exists()


def test_a_graph_or_a_model_alone_is_refused(tmp_path: Path) -> None:
    run, path = trees(), tmp_path / "report.html"
    with pytest.raises(InputError, match="the graph is given alone; give the model and the graph"):
        butfor.report(reread(run.results), path, data=run.data)
    with pytest.raises(InputError, match="the model is given alone"):
        butfor.report(reread(run.results), path, model=run.model)


def test_where_only_receptive_fields_are_read(tmp_path: Path) -> None:
    run = trees()
    results = butfor.explain(run.model, run.data, [600, 601], butfor.Greedy(), verify="receptive-field")
    page = content(butfor.report(results, tmp_path / "report.html"))
    assert page["note"] == module.NO_CLASSES
    assert len(page["results"][0]["scene"]["labels"]) > 1
    assert page["legend"]["kinds"] == {"-1": ["", "#e8e8e8", "o"]}


def test_a_file_and_a_folder_of_results(tmp_path: Path) -> None:
    results = trees().results[:6]
    first = results[0]
    run = RunInfo(first.graph_id, first.model_id, first.method, butfor.Goal(), "", 0, False)
    for path, kind in [
        (tmp_path / "results.jsonl", lambda path: Store(path, run)),
        (tmp_path / "results", lambda path: Folder(path, run, butfor.Budget())),
    ]:
        with kind(path) as store:
            for result in results:
                store.append(result)
        page = content(butfor.report(butfor.load_results(path), tmp_path / "report.html", replace=True))
        assert [record["sentence"] for record in page["results"]] == [str(result) for result in results]
