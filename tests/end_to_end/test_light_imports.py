"""Importing butfor must not load what only some of its parts need."""

from __future__ import annotations

import subprocess
import sys


def test_datasets_and_models_are_imported_without_optional_packages() -> None:
    code = (
        "import sys, butfor.datasets, butfor.models;"
        "print([m for m in ('polars', 'matplotlib', 'rich', 'networkx', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
