"""``butfor reproduce``: the paper's evaluation, run again and compared with its numbers."""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter, validators

from butfor.boundary.extras import optional_imports
from butfor.cli.interrupts import exit_code
from butfor.cli.output import note, print_table, say
from butfor.errors import InputError, StoreError
from butfor.paper import PAPER
from butfor.paper.benchmark import published_files
from butfor.paper.experiment import Experiment
from butfor.paper.jobs import run_jobs
from butfor.paper.parts import PARTS
from butfor.paper.report import CommandRecord, write_report

if TYPE_CHECKING:
    from butfor.paper.sections import Section

    Dataset = str
    PartName = str
else:
    Dataset = Literal[tuple(PAPER)]
    PartName = Literal[tuple(PARTS)]

__all__ = ["reproduce"]

CORES = os.cpu_count() or 1

# Where the published graphs and weights are, relative to a checkout of this project.
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
        parts: which parts to run; by default all of them.
        datasets: which of the paper's datasets to use.
        quick: explain a tenth of the nodes, with one seed, to see it work.
        seeds: how many fresh graphs and models to make for each dataset; by default 5, and 3 for ba-shapes.
        reference: the folder of the published graphs and weights; by default ../shared/data/reference, if it exists.
            Without it, only fresh graphs and models are explained.
        jobs: how many processes to run in parallel.
        out: the folder for results, models, tables, figures and index.html, which shows everything. Results that are
            already there are not computed again.
        quiet: show no progress bars and no tables.
    """
    started = time.monotonic()
    chosen = [name for name in PARTS if name in parts or not parts]
    _check_extras(chosen)
    wanted = tuple(name for name in PAPER if name in datasets)
    if not wanted:
        raise InputError(f"--datasets names none; choose from {', '.join(PAPER)}")
    experiment = Experiment(out, _reference(reference, wanted, quiet), wanted, seeds, quick, quiet)
    command = f"butfor {shlex.join(sys.argv[1:])}" if _is_command() else "butfor reproduce"
    record = CommandRecord(experiment, chosen, jobs, command)
    _check_folder(out)
    try:
        run_jobs(experiment, [job for name in chosen for job in PARTS[name].jobs(experiment)], jobs)
        sections = [PARTS[name].section(experiment) for name in chosen]
    except KeyboardInterrupt as problem:
        print(f"interrupted: what is done is kept in {out}; the same command goes on with the rest", file=sys.stderr)
        return exit_code(problem)
    except StoreError as problem:
        raise StoreError(f"{problem} (or give another folder as --out)") from problem
    write_report(experiment, sections, record)
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
        for line in table.notes:
            say(f"  {line}")
        say()


def _reference(given: Path | None, datasets: tuple[str, ...], quiet: bool) -> Path | None:
    """The folder of the published graphs, after checking that it has all files that are needed; None without one."""
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


def _check_extras(parts: list[str]) -> None:
    """Import optional packages now, so that a missing one is reported at once and not after half an hour."""
    with optional_imports("reproduce"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import polars  # noqa: F401

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
    """Whether this was called from a shell instead of from Python."""
    return len(sys.argv) > 1 and sys.argv[1] == "reproduce"
