from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from butfor.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint, results and their proofs."""
    path = tmp_path_factory.mktemp("proofs")
    assert main(["train", "tree-cycles", "--epochs", "300", "--out", str(path / "run")]) == 0
    explain = ["explain", "--checkpoint", str(path / "run"), "--nodes", "600-605", "--seconds", "2", "--certificate"]
    assert main([*explain, "--out", str(path / "cfs.jsonl"), "--quiet"]) == 0
    return path


def check(folder: Path, *more: str) -> int:
    return main(["check", str(folder / "cfs.jsonl"), "--checkpoint", str(folder / "run"), *more])


def test_proofs_are_confirmed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(folder) == 0
    said = capsys.readouterr().out
    assert "6 of 6 results are confirmed; 0 refused, 0 without a certificate" in said
    assert "optimal holds" in said


def test_a_proof_that_was_changed_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (folder / "cfs.proof.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["tree"] = first["tree"][:-1]
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([json.dumps(first), *lines[1:4]]) + "\n")
    assert check(folder, "--certificate", str(broken)) == 2
    said = capsys.readouterr().out
    assert "refused: its tree breaks off" in said
    assert "3 of 6 results are confirmed; 1 refused, 2 without a certificate" in said


def test_results_that_claim_more_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [json.loads(line) for line in (folder / "cfs.jsonl").read_text().splitlines()]
    for one in results:
        one["status"], one["lower_bound"] = "found", one["cost"] + 0.5
    (tmp_path / "cfs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in results))
    proofs = ["--certificate", str(folder / "cfs.proof.jsonl")]
    assert main(["check", str(tmp_path / "cfs.jsonl"), "--checkpoint", str(folder / "run"), *proofs]) == 2
    assert "it proves less than the result claims" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("false", "said"),
    [
        ({"cost": 0.25}, "its edits cost"),
        ({"status": "reached", "edits": [], "after": None, "cost": 0.0, "lower_bound": 0.0}, "does not reach the goal"),
    ],
    ids=["cost", "reached"],
)
def test_results_that_say_something_else_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], false: dict[str, object], said: str
) -> None:
    first = json.loads((folder / "cfs.jsonl").read_text().splitlines()[0])
    nothing = {"alternatives": [], "necessity": None, "verified_on": None} if "edits" in false else {}
    (tmp_path / "cfs.jsonl").write_text(json.dumps(first | false | nothing) + "\n")
    proofs = ["--certificate", str(folder / "cfs.proof.jsonl")]
    assert main(["check", str(tmp_path / "cfs.jsonl"), "--checkpoint", str(folder / "run"), *proofs]) == 2
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--certificate", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--certificate", "README"], "README"),
    ],
)
def test_bad_input(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README").write_text("no proof at all\n")
    assert check(folder, *more) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error


def test_the_model_is_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder / "cfs.jsonl")]) == 2
    assert "give --checkpoint" in capsys.readouterr().err


def test_what_is_not_a_proof_is_never_replaced(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out.proof.jsonl").write_text("my diary\n")
    explain = ["explain", "--checkpoint", str(folder / "run"), "--nodes", "600", "--certificate"]
    assert main([*explain, "--out", str(tmp_path / "out.jsonl")]) == 2
    assert "it is not replaced" in capsys.readouterr().err
    assert (tmp_path / "out.proof.jsonl").read_text() == "my diary\n"


def test_proofs_need_a_file_beside_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--checkpoint", str(folder / "run"), "--nodes", "600", "--certificate"]) == 2
    assert "give --out FILE" in capsys.readouterr().err
