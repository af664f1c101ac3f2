"""The search for hyper-parameters: the paper's grid, and whether the paper's choice comes out."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.paper import PAPER
from butfor.paper.benchmark import Benchmark, load_benchmark
from butfor.paper.parts import hyperparameter_search as search
from reproduction import QUICK, Done, lines, markdown, reproduce, result_files, table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.published
# Nodes of the published Tree-Cycles that are solved at once, after 100 and after 300 iterations, and never.
@pytest.mark.parametrize(("variant", "nodes"), [("code", [639, 553, 13, 10, 515]), ("paper", [516, 22, 147, 34])])
@pytest.mark.slow
def test_one_run_tells_what_fewer_iterations_find(variant: str, nodes: list[int], reference: Path) -> None:
    loaded = load_benchmark(Benchmark("tree-cycles"), reference)
    setting = search.Setting(500, 0.5, 0.1, 0.0, "sgd")
    run = butfor.explain(loaded.model, loaded.data, nodes, setting.method(variant))
    counts = []
    for epochs in search.EPOCHS[:2]:
        method = butfor.CFGNN.published() if variant == "code" else butfor.CFGNN()
        shorter = butfor.explain(loaded.model, loaded.data, nodes, replace(method, epochs=epochs))
        counts.append(sum(result.found for result in shorter))
        assert counts[-1] == sum(result.found and result.evaluations <= epochs for result in run)
    assert 0 < counts[0] < counts[1] < sum(result.found for result in run) < len(nodes)


@pytest.mark.published
def test_beta_changes_nothing_in_the_published_code(reference: Path) -> None:
    loaded = load_benchmark(Benchmark("tree-cycles"), reference)
    some, others = (
        butfor.explain(loaded.model, loaded.data, loaded.test_nodes[:10], butfor.CFGNN.published(beta=beta, epochs=100))
        for beta in search.BETAS
    )
    assert [result.edits for result in some] == [result.edits for result in others]
    assert any(result.found for result in some)


def test_the_grid_is_the_paper_s() -> None:
    assert len(search.GRID) == len(set(search.GRID)) == 3 * 2 * 4 * (4 + 1 + 1)
    runs = {variant: {setting.label(variant) for setting in search.GRID} for variant in search.VARIANTS}
    assert {variant: len(labels) for variant, labels in runs.items()} == {"code": 24, "paper": 48}
    for dataset in PAPER:
        assert search.paper_setting(Benchmark(dataset)) in search.GRID


def test_optuna_finds_the_best_of_an_easy_grid() -> None:
    found = {setting: int(setting.optimizer == "adam") * 10 + int(setting.epochs == 300) for setting in search.GRID}
    best = search.search_with_optuna(found)
    assert best.found == 11 == found[best.setting]
    assert 1 <= best.trial <= search.TRIALS
    assert search.search_with_optuna(found) == best


@pytest.mark.slow
@pytest.mark.published
def test_the_search_tries_the_paper_s_whole_grid(variants: Done) -> None:
    rows = table(variants.folder, "search")
    assert {row["total"] for row in rows} == {"1"}
    tried = [
        (int(row["epochs"]), float(row["beta"]), float(row["lr"]), row["optimizer"], float(row["momentum"] or 0))
        for row in rows
    ]
    # Only SGD has momentum.
    kinds = [("sgd", momentum) for momentum in (0, 0.5, 0.7, 0.9)] + [("adam", 0), ("adadelta", 0)]
    grid = [
        (epochs, beta, lr, *kind)
        for epochs, beta, lr, kind in product((100, 300, 500), (0.1, 0.5), (0.005, 0.01, 0.1, 1.0), kinds)
    ]
    assert len(grid) == 144
    assert sorted(tried) == sorted(grid)


@pytest.mark.slow
@pytest.mark.published
def test_the_search_counts_what_is_found_within_each_setting_s_epochs(variants: Done) -> None:
    found = {
        (row["optimizer"], *(float(row[name]) for name in ("momentum", "lr", "beta")), int(row["epochs"])): int(
            row["found"]
        )
        for row in table(variants.folder, "search")
    }
    for (*setting, epochs), count in found.items():
        if epochs > 100:
            assert count >= found[(*setting, epochs - 200)]
    for path in (variants.folder / "results/published/tree-cycles/search").rglob("*.jsonl"):
        settings = lines(path)[0]["method"]["settings"]
        key = tuple(settings[name] for name in ("optimizer", "momentum", "lr", "beta", "epochs"))
        assert found[key] == sum(bool(line["edits"]) for line in lines(path))


def the_verdict(done: Done) -> bool:
    """Whether the paper's choice comes out, as the screen and the table say it; checked against the counts."""
    rows = table(done.folder, "search")
    (choice,) = [row for row in rows if row["paper"] == "true"]
    assert [choice[name] for name in ("epochs", "beta", "lr", "optimizer")] == ["500", "0.5", "0.1", "sgd"]
    assert float(choice["momentum"]) == 0
    counts = [int(row["found"]) for row in rows]
    best, ours = max(counts), int(choice["found"])
    verdict = "does not come out" not in done.out
    assert verdict == (ours == best)
    assert f"finds {ours} of 1" in done.out
    headings, cells = markdown(done.folder, "search")[1]
    assert any(cell.startswith("yes") for cell in cells) == verdict
    assert any(cell.startswith("no") for cell in cells) == (not verdict)
    assert [cell for heading, cell in zip(headings, cells, strict=True) if heading == "finds"] == [str(ours), str(best)]
    # Optuna searches the same grid: it can do no better.
    (optuna,) = [cell for heading, cell in zip(headings, cells, strict=True) if "Optuna" in heading]
    assert int(optuna.split()[0]) <= best
    return verdict


@pytest.mark.slow
@pytest.mark.published
def test_the_search_says_that_the_paper_s_choice_comes_out(variants: Done) -> None:
    assert len({row["found"] for row in table(variants.folder, "search")}) > 1
    assert the_verdict(variants)


@pytest.mark.slow
@pytest.mark.published
def test_the_search_goes_on_and_says_that_the_paper_s_choice_does_not_come_out(
    variants: Done, other_reference: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(variants.folder, folder)
    # As if the paper's setting had failed at a node: the failure of a setting that did.
    paths = list((folder / "results/published/tree-cycles/search").rglob("*.jsonl"))
    fails = {path: [line for line in lines(path) if not line["edits"]] for path in paths}
    (choice,) = [
        path
        for path in paths
        if {"lr": 0.1, "optimizer": "sgd", "momentum": 0.0}.items() <= lines(path)[0]["method"]["settings"].items()
    ]
    assert not fails[choice]
    failure = next(lines_[0] for lines_ in fails.values() if lines_)
    failure["method"] = lines(choice)[0]["method"]
    kept = [line for line in lines(choice) if line["target"] != failure["target"]]
    choice.write_text("".join(json.dumps(line) + "\n" for line in [*kept, failure]), encoding="utf-8")
    files = result_files(folder)
    done = reproduce(folder, "search", *QUICK, "--reference", str(other_reference))
    assert result_files(folder) == files
    assert not the_verdict(done)
