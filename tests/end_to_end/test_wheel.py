"""The wheel has all that the package needs, and the quickstart runs from it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel puts into a site-packages folder."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


@pytest.mark.slow
def test_every_file_of_the_package_is_in_the_wheel(unpacked: Path) -> None:
    source = ROOT / "src"
    ours = {
        path.relative_to(source) for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    theirs = {path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file()}
    assert ours <= theirs
    assert all(path.parts[0] in ("butfor",) or ".dist-info" in path.parts[0] for path in theirs)


@pytest.mark.slow
def test_the_quickstart_runs_from_the_wheel(unpacked: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    code = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)[0]
    where = f"{code}\nimport butfor\nassert butfor.__file__.startswith({str(unpacked)!r}), butfor.__file__"
    done = subprocess.run(
        [sys.executable, "-c", where],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = re.findall(r"```text\n(.*?)```", readme, flags=re.DOTALL)[0]
    assert done.stdout == printed
