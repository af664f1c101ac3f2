"""A figure that no pyplot has heard of is shown by a notebook."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from butfor.plotting.figure import new_figure

SHOWN = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from butfor.plotting.figure import new_figure
shell = InteractiveShell.instance()
assert "matplotlib.pyplot" not in sys.modules
data, _ = shell.display_formatter.format(new_figure((2, 1), 50))
assert data["image/png"].startswith(b"\\x89PNG"), data
"""


def test_a_notebook_shows_it_though_pyplot_was_never_imported() -> None:
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_is_pickled_like_any_other() -> None:
    figure = new_figure((2, 1), 50)
    figure.suptitle("title")
    again = pickle.loads(pickle.dumps(figure))
    assert again.get_suptitle() == "title"
    assert vars(again)["_repr_png_"]().startswith(b"\x89PNG")
