"""The examples run, on the small data that they make up where there is no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))

# A folder that is not there stands for data that nobody has.
ARGUMENTS = {"citations": ["nowhere"], "molecule": ["nowhere"]}


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", str(example)]
    command += ARGUMENTS.get(example.stem, [])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "But for " in done.stdout
    pictures = [picture for picture in tmp_path.rglob("*") if picture.is_file()]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert bool(pictures) == (example.stem == "molecule")
