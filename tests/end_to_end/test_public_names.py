"""What `import butfor` offers, and what it does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import butfor


def test_import_is_light() -> None:
    code = (
        "import sys, butfor; heavy = {'torch', 'torch_geometric'} & set(sys.modules); "
        "butfor.explain, butfor.datasets, butfor.models, butfor.CFGNN; "
        "optional = {'matplotlib', 'polars', 'rich', 'cyclopts', 'networkx', 'pandas'}; "
        "heavy |= optional & set(sys.modules); "
        "import butfor.datasets, butfor.models; heavy |= optional & set(sys.modules); print(sorted(heavy))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(getattr(butfor, name) is not None for name in butfor.__all__)
    assert dir(butfor) == sorted(butfor.__all__)
    with pytest.raises(AttributeError, match="explian"):
        butfor.explian  # noqa: B018
