"""The shell completes commands and options."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

RUN = [sys.executable, "-c", "import sys; from butfor.cli import main; sys.exit(main())"]


def test_completion_is_installed_for_the_shell(tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash", "XDG_DATA_HOME": str(tmp_path / "share")}
    done = subprocess.run(
        [*RUN, "--install-completion", "--shell", "bash"], env=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (script,) = [path for path in tmp_path.rglob("*") if path.is_file() and path.name == "butfor"]
    text = script.read_text()
    for command in ("explain", "report", "explore", "--checkpoint"):
        assert command in text
    subprocess.run(["bash", "-n", str(script)], check=True)
