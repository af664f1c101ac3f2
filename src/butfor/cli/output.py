"""The output of the commands: tables on standard output, notes and progress on standard error."""

from __future__ import annotations

import shlex
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from butfor.boundary.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butfor.result.counterfactual import Counterfactual

__all__ = ["called", "note", "print_table", "read_with_notes", "say"]

# Where there is no terminal there is no width to fit in: rows stay on one line for grep and awk.
WIDE = 1000


def called() -> str:
    """What to type to call this program again: its name, or its path where a shell does not find it by its name."""
    program = Path(sys.argv[0])
    if program.name != "butfor" or not program.is_file():  # called from Python
        return "butfor"
    found = shutil.which("butfor")
    return "butfor" if found is not None and program.samefile(found) else shlex.quote(str(program))


def say(text: str = "") -> None:
    """Print a line on standard output without disturbing a progress bar."""
    tqdm.write(printable(text), file=sys.stdout)


def note(text: str, quiet: bool = False) -> None:
    """Print a note on standard error, unless ``quiet`` is set."""
    if not quiet:
        tqdm.write(f"note: {printable(text)}", file=sys.stderr)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    left: int = 1,
    fit: bool = True,
) -> None:
    """Print a table; as plain text where there is no terminal.

    The first ``left`` columns are aligned left, the others right. Without ``fit``, a row stays on one line however
    narrow the terminal is. A row whose first cell is indented belongs to the row above it and is shown dimmed. The
    line of headings is left out if all of them are empty.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    is_terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if is_terminal and fit else WIDE)
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD if is_terminal else None,
        show_edge=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_header=any(headings),
    )
    for number, heading in enumerate(headings):
        table.add_column(Text(printable(heading)), justify="left" if number < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, map(printable, row)), style="dim" if row[0].startswith(" ") else None)
    if is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        say(line.rstrip())


def read_with_notes(path: Path) -> Sequence[Counterfactual]:
    """The results of a file or folder; warnings about the file are printed as notes.

    Those of a folder, which may be more than fit in memory, are read when they are needed.
    """
    from butfor.runs import load_results, read_results

    if path.is_dir():
        return load_results(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = read_results(path)
    for warning in caught:
        note(str(warning.message))
    return results
