"""What `butfor reproduce` refuses: in one line, before anything is done, and with nothing lost."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest
import torch

from butfor.cli import main
from reproduction import QUICK, refusal, result_files, tables

if TYPE_CHECKING:
    from pathlib import Path

    from reproduction import Capture


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table-9"], ["table-9", "table-2"]),
        (["table-1", "--datasets", "cora"], ["cora", "tree-cycles"]),
        (["table-1", "--seeds", "0"], ["--seeds", "0"]),
        (["table-1", "--seeds", "many"], ["--seeds", "many"]),
        (["table-1", "--jobs", "0"], ["--jobs", "0"]),
        (["table-1", "--jobs", "-1"], ["--jobs", "-1"]),
        (["table-1", "--reference", "nowhere"], ["--reference", "nowhere"]),
    ],
)
def test_bad_arguments_are_refused(
    arguments: list[str], words: list[str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    message = refusal(capsys, *arguments, "--out", "out")
    assert all(word in message for word in words)
    assert not (tmp_path / "out").exists()


@pytest.mark.published
@pytest.mark.parametrize("lacks", ["tree_cycles_graph.npz", "tree_cycles_gcn_weights.npz"])
def test_a_reference_folder_that_lacks_a_file_is_refused_before_anything_is_done(
    lacks: str, other_reference: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reference"
    shutil.copytree(other_reference, folder)
    (folder / lacks).unlink()
    monkeypatch.setattr(torch.optim.Adam, "step", lambda *_: pytest.fail("a model is trained for nothing"))
    message = refusal(capsys, "table-2", *QUICK, "--reference", str(folder), "--out", str(tmp_path / "out"))
    assert lacks in message


@pytest.mark.published
@pytest.mark.parametrize("package", ["jinja2", "optuna", "captum"])
def test_a_missing_package_names_its_extra_before_anything_is_done(
    package: str, reference: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    out = tmp_path / "out"
    message = refusal(capsys, "--quick", "--jobs", "2", "--reference", str(reference), "--out", str(out))
    assert f"{package} is not installed" in message
    assert "pip install 'butfor[reproduce]'" in message
    assert not out.exists()


@pytest.mark.published
def test_a_folder_that_is_a_file_is_refused(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "file"
    path.write_text("precious")
    for out in (path, path / "deeper"):
        message = refusal(capsys, "table-1", *QUICK, "--reference", str(reference), "--out", str(out))
        assert str(path) in message
    assert path.read_text() == "precious"


@pytest.mark.published
@pytest.mark.parametrize("damage", ['{"schema": 2, "tar\n', '{"schema": 2}\n', "[]\n", "\x00\n"])
def test_a_damaged_result_is_named_and_nothing_is_lost(
    damage: str, copy: Path, reference: Path, capsys: Capture
) -> None:
    path = copy / "results/published/tree-cycles/cf-gnn.jsonl"
    whole = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*whole[:4], damage, *whole[5:]]), encoding="utf-8")
    files = result_files(copy)
    message = refusal(capsys, "table-2", *QUICK, "--reference", str(reference), "--out", str(copy))
    assert "line 5" in message
    assert str(path) in message
    assert result_files(copy) == files


@pytest.mark.published
def test_results_of_another_model_are_not_mixed_in(copy: Path, other_reference: Path, capsys: Capture) -> None:
    files, before = result_files(copy), tables(copy)
    message = refusal(capsys, "table-2", *QUICK, "--reference", str(other_reference), "--out", str(copy))
    assert "another" in message
    assert str(copy) in message
    # What the user can choose is the folder, not a file in it.
    assert "--out" in message or "folder" in message
    assert result_files(copy) == files
    assert tables(copy) == before


@pytest.mark.published
def test_results_of_another_method_are_not_mixed_in(copy: Path, reference: Path, capsys: Capture) -> None:
    folder = copy / "results/published/tree-cycles"
    shutil.copy(folder / "exact.jsonl", folder / "cf-gnn.jsonl")
    files = result_files(copy)
    message = refusal(capsys, "table-2", *QUICK, "--reference", str(reference), "--out", str(copy))
    assert "cf-gnn.jsonl" in message
    assert result_files(copy) == files


@pytest.mark.published
@pytest.mark.parametrize("wrong", ["a damaged line", "another model", "a file that is not there"])
def test_an_error_is_one_line_and_does_not_promise_what_is_not_true(
    wrong: str, copy: Path, reference: Path, other_reference: Path, tmp_path: Path, capsys: Capture
) -> None:
    if wrong == "a damaged line":
        path = copy / "results/published/tree-cycles/random.jsonl"
        path.write_text("{\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    elif wrong == "another model":
        reference = other_reference
    else:
        reference = tmp_path
    arguments = ["reproduce", "table-2", *QUICK, "--reference", str(reference), "--out", str(copy)]
    capsys.readouterr()
    said = []
    for _ in range(2):
        assert main(arguments) == 2
        said.append(capsys.readouterr().err)
    # The same command does not go on: it fails in the same way.
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 1, said[0]


@pytest.mark.published
@pytest.mark.parametrize("name", ["settings.json", "parts/table-2.json"])
def test_a_damaged_note_of_an_earlier_run_is_named(name: str, copy: Path, reference: Path, capsys: Capture) -> None:
    (copy / name).write_text("{")
    files = result_files(copy)
    message = refusal(capsys, "table-1", *QUICK, "--reference", str(reference), "--out", str(copy))
    assert name in message
    assert result_files(copy) == files
