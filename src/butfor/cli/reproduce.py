"""``butfor reproduce``: the paper's evaluation, run again and laid beside its numbers."""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter, validators

from butfor.cli.interrupts import exit_code
from butfor.cli.output import note, print_table, say
from butfor.errors import InputError, StoreError
from butfor.paper import PAPER
from butfor.paper.lab import Lab
from butfor.paper.parts import PARTS
from butfor.paper.report import Record, write_report
from butfor.paper.subjects import published_files
from butfor.paper.work import carry_out

if TYPE_CHECKING:
    from butfor.paper.sections import Section

    Dataset = str
    PartName = str
else:
    Dataset = Literal[tuple(PAPER)]
    PartName = Literal[tuple(PARTS)]

__all__ = ["reproduce"]

CORES = os.cpu_count() or 1

# Where the published graphs and weights lie beside a checkout of this project.
REFERENCE = Path("../shared/data/reference")

OUTPUT = Group("Output", sort_key=13)
Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def reproduce(
    *parts: PartName,
    datasets: Annotated[tuple[Dataset, ...], Parameter(consume_multiple=True, negative=())] = tuple(PAPER),
    quick: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    seeds: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=1000))] | None = None,
    reference: Path | None = None,
    jobs: Count = CORES,
    out: Annotated[Path, Parameter(group=OUTPUT)] = Path("reproduction"),
    quiet: Annotated[bool, Parameter(group=OUTPUT, negative=(), show_default=False)] = False,
) -> int:
    """Run the paper's whole evaluation, or parts of it, and show our numbers beside the published ones.

    Args:
        parts: which parts; all of them unless given.
        datasets: which of the paper's datasets.
        quick: a tenth of the nodes and one seed, to see it work.
        seeds: how many graphs and models to make anew for each dataset; 5, and 3 for ba-shapes, unless given.
        reference: the folder of the published graphs and weights; ../shared/data/reference where that is there.
            Without it only graphs and models made anew are explained.
        jobs: how many processes work at once.
        out: the folder for results, models, tables, figures and index.html, which shows them all. What is in it
            already is not done again.
        quiet: no progress bars, and no tables on the screen.
    """
    started = time.monotonic()
    import matplotlib  # noqa: F401 (if these are missing, say so now and not after half an hour)
    import polars  # noqa: F401

    chosen = [name for name in PARTS if name in parts or not parts]
    _import_for(chosen, jobs)
    wanted = tuple(name for name in PAPER if name in datasets)
    if not wanted:
        raise InputError(f"--datasets names none; choose from {', '.join(PAPER)}")
    lab = Lab(out, _reference(reference, wanted, quiet), wanted, seeds, quick, quiet)
    record = Record(lab, chosen, jobs, f"butfor {shlex.join(sys.argv[1:])}" if _is_command() else "butfor reproduce")
    _check_folder(out)
    sections: list[Section] = []
    try:
        carry_out(lab, [ask for name in chosen for ask in PARTS[name].asks(lab)], jobs)
        for name in chosen:
            sections.append(PARTS[name].section(lab))
    except KeyboardInterrupt as problem:
        print(f"interrupted: what is done is kept in {out}; the same command goes on with the rest", file=sys.stderr)
        return exit_code(problem)
    except StoreError as problem:
        raise StoreError(f"{problem} (or give another folder as --out)") from problem
    write_report(lab, sections, record)
    for section in [] if quiet else sections:
        _show(section)
    say(f"Done in {time.monotonic() - started:.0f} s. Everything is in {out / 'index.html'}")
    return 0


def _show(section: "Section") -> None:
    say(section.title)
    say(f"  {section.settings}")
    for paragraph in section.text:
        say(f"  {paragraph}")
    say()
    for table in section.tables:
        print_table(table.headings, table.rows, title=table.title, left=table.left, fit=False)
        for words in table.notes:
            say(f"  {words}")
        say()


def _reference(given: Path | None, datasets: tuple[str, ...], quiet: bool) -> Path | None:
    """The folder of the published graphs, where it has all that is needed."""
    if given is None and not REFERENCE.is_dir():
        note(f"the published graphs and weights are not at {REFERENCE}: explaining fresh graphs only", quiet)
        return None
    folder = given or REFERENCE
    if not folder.is_dir():
        raise InputError(f"--reference {folder} is not a folder; give the one with the published graphs and weights")
    missing = [path.name for name in datasets for path in published_files(name, folder) if not path.is_file()]
    if missing:
        raise InputError(f"{folder} does not have {' and '.join(missing)}; give another folder as --reference")
    return folder.resolve()


def _import_for(parts: list[str], jobs: int) -> None:
    """Find out now what is not installed."""
    if jobs > 1:
        import joblib  # noqa: F401
    if "search" in parts:
        import optuna  # noqa: F401
    if "table-3" in parts or "time" in parts:
        import captum  # noqa: F401


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"--out {folder} is a file; give a folder") from None
    except OSError as problem:
        raise InputError(f"cannot make the folder {folder}: {problem.strerror}") from problem
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to the folder {folder}: it is not yours to write to")


def _is_command() -> bool:
    """Whether this was called from a shell, not from Python."""
    return len(sys.argv) > 1 and sys.argv[1] == "reproduce"
