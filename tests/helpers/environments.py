"""New environments that have the built wheel and what it requires, with some extras or none.

What is required is linked from this environment and not installed anew, since elsewhere an index may have only the
torch of several gigabytes. Nothing else of this environment can be imported in the new one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import distribution
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment in this folder."""

    folder: Path

    @classmethod
    def of(cls, folder: Path, wheel: Path, requires: list[str], *extras: str) -> Environment:
        """Make a new one; ``requires`` is what the wheel's metadata say."""
        venv.create(folder, with_pip=False)
        made = cls(folder)
        made.pip("install", "--quiet", "--no-deps", "--no-index", str(wheel))
        for name in closure(requires, extras):
            made.link(name)
        return made

    @property
    def site(self) -> Path:
        """Where its packages are."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def link(self, name: str) -> None:
        """Make an installed distribution visible here."""
        found = distribution(name)
        for part in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (self.site / part).symlink_to(found.locate_file(part))

    def pip(self, *arguments: str) -> str:
        """What this environment's pip, which it has not of its own, says to a command."""
        command = [sys.executable, "-m", "pip", "--python", str(self.folder), "--disable-pip-version-check", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def run(self, program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs."""
        command = [str(self.folder / "bin" / program), *arguments]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def closure(requires: list[str], extras: tuple[str, ...]) -> set[str]:
    """The names of all distributions that are required, directly or by others."""
    names: set[str] = set()
    waiting = [(line, extras) for line in requires]
    while waiting:
        line, wanted = waiting.pop()
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in wanted or ("",)):
            continue
        name = canonicalize_name(requirement.name)
        if name == "butfor":  # an extra that has others
            waiting += [(line, tuple(requirement.extras)) for line in requires]
        elif name not in names:
            names.add(name)
            waiting += [(line, tuple(requirement.extras)) for line in distribution(name).requires or ()]
    return names
