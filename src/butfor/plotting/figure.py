"""A figure that pyplot does not keep, so that there is nothing to close; a notebook shows it all the same."""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING, Any

from butfor.boundary.extras import optional_imports

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["new_figure"]


def new_figure(size: tuple[float, float], dpi: int, layout: Any = None) -> Figure:
    """An empty page.

    Raises:
        InputError: matplotlib is not installed.
    """
    with optional_imports():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=size, dpi=dpi, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    # IPython learns how to show figures when pyplot is imported, and nobody need have done that. A subclass would
    # need matplotlib before it is known to be there.
    vars(figure)["_repr_png_"] = partial(_png, figure)
    return figure


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()
