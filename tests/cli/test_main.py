"""``butfor`` as a process: a package that is missing, and output that nobody takes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


PROGRAM = "from butfor.cli import main; raise SystemExit(main())"


@pytest.mark.slow
@pytest.mark.parametrize(("package", "extra"), [("cyclopts", "cli"), ("rich", "cli")])
def test_a_missing_package_names_its_extra(package: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules[{package!r}] = None\n")
    done = subprocess.run(
        [sys.executable, "-c", "from butfor.cli import main; raise SystemExit(main(['datasets']))"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"pip install 'butfor[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_pipe_that_is_closed(trained: Path) -> None:
    command = f'{sys.executable} -c "{PROGRAM}" explain --checkpoint {trained} --nodes all | head -n 1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("Node 0 is predicted")
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.slow
def test_standard_output_that_is_full(rings: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "show", str(rings / "done.jsonl")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "error: No space left on device\n"
