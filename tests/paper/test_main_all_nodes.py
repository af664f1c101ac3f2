"""Table 2 of all test nodes: begun by two processes, interrupted by Ctrl-C, finished, and as published."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from reproduction import METHODS, QUICK, Done, lines, reproduce, result_files, results, table, tables

pytestmark = pytest.mark.published


@pytest.fixture(scope="module")
def full(run: Done, reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Table 2 of all test nodes: begun by two processes, interrupted by Ctrl-C, finished by one."""
    folder = tmp_path_factory.mktemp("full") / "run"
    shutil.copytree(run.folder / "models", folder / "models")
    arguments = ["table-2", "--datasets", "tree-cycles", "--seeds", "1", "--reference", str(reference)]
    code = "from butfor.cli import main; raise SystemExit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "reproduce", *arguments, "--jobs", "2", "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 300
        while sum(path.stat().st_size > 0 for path in folder.rglob("*.jsonl")) < 6:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    (folder / "interrupted.txt").write_text(f"{process.returncode}\n{err}")
    shutil.copytree(folder / "results", folder / "kept")
    return reproduce(folder, *arguments, "--jobs", "1", "--quiet")


@pytest.mark.slow
def test_ctrl_c_keeps_what_two_processes_have_done(full: Done, run: Done) -> None:
    code, err = (full.folder / "interrupted.txt").read_text().split("\n", 1)
    assert code == "130"
    assert "Traceback" not in err
    kept = [path for path in (full.folder / "kept").rglob("*.jsonl") if path.stat().st_size]
    assert kept
    compared = 0
    for path in kept:
        name = path.relative_to(full.folder / "kept")
        whole = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        assert whole
        assert (full.folder / "results" / name).read_bytes().startswith(b"".join(whole))
        # Two processes find what one process finds.
        alone = {line["target"]: line["edits"] for line in lines(run.folder / "results" / name)}
        for line in map(json.loads, whole):
            if line["target"] in alone:
                assert line["edits"] == alone[line["target"]]
                compared += 1
    assert compared
    everything = [line for path in (full.folder / "results").rglob("*.jsonl") for line in lines(path)]
    assert len(everything) == len(METHODS) * (174 + 175)


@pytest.mark.slow
def test_ctrl_c_is_answered_by_one_line(full: Done) -> None:
    err = (full.folder / "interrupted.txt").read_text().split("\n", 1)[1]
    assert "interrupted" in err
    assert len(err.splitlines()) == 1, err


@pytest.mark.slow
def test_all_nodes_of_the_published_graph_give_the_published_counts(full: Done, reference: Path) -> None:
    rows = {row["method"]: row for row in table(full.folder, "table-2-published-all")}
    assert {row["total"] for row in rows.values()} == {"174"}
    theirs = json.loads((reference / "tree_cycles_published_results.json").read_text())["size"]
    ours = {str(line["target"]): len(line["edits"]) or None for line in results(full.folder, "published", "cf-gnn")}
    assert ours == theirs
    assert rows["cf-gnn"]["found"] == "139"
    assert f"{float(rows['cf-gnn']['size']):.2f} {float(rows['cf-gnn']['size_std']):.2f}" == "2.09 2.21"
    assert rows["rm-1hop"]["found"] == "94"
    assert float(rows["rm-1hop"]["size"]) == pytest.approx(2.11, abs=0.01)
    # One test node of the paper is not known: 1HOP's published count is 119 of 175.
    assert rows["1hop"]["found"] in ("118", "119")
    assert rows["random"]["found"] == rows["greedy"]["found"] == rows["exact"]["found"] == "174"
    assert rows["exact"]["proved"] == "174"
    assert Counter(len(line["edits"]) for line in results(full.folder, "published", "exact")) == {1: 126, 2: 48}
    motif = {row["method"]: row for row in table(full.folder, "table-2-published-motif")}
    assert {row["total"] for row in motif.values()} == {"72"}
    assert f"{float(motif['exact']['size']):.2f}" == "1.40"


@pytest.mark.slow
def test_a_quick_run_in_the_folder_of_a_full_one_is_still_a_tenth(
    full: Done, run: Done, reference: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(full.folder, tmp_path / "copy"))
    files, before = result_files(folder), tables(folder)
    reproduce(folder, "table-2", *QUICK, "--quiet", "--reference", str(reference))
    assert result_files(folder) == files
    for name, text in tables(folder).items():
        assert text == tables(run.folder)[name] != before[name]
