"""The command line: ``butfor``. One command is one file; nothing heavy is imported before it is needed."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

from butfor.boundary.extras import optional_imports
from butfor.boundary.printable import printable
from butfor.cli.interrupts import TERMINATED, exit_code, terminable, was_terminated
from butfor.errors import ButforError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

WRONG_INPUT, PIPE_CLOSED = 2, 141

# How much two words have in common (0 to 1) if one may be the other mistyped: --ot is --out.
ALIKE = 0.75


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0: done; 2: an argument, file or model cannot be used, and a line on standard error says why; 130: interrupted by
    Ctrl-C; 141: whoever read the output stopped reading; 143: ended by SIGTERM.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal gets "?" for "–", not a traceback
    try:
        with terminable(), _no_warnings(), optional_imports():
            code = _run(sys.argv[1:] if argv is None else argv)
            sys.stdout.flush()
    except KeyboardInterrupt as problem:
        return _fail("interrupted", exit_code(problem))
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except ButforError as problem:
        return _fail(f"error: {problem}", WRONG_INPUT)
    except OSError as problem:
        if was_terminated():
            return _fail("interrupted", TERMINATED)
        _discard_output()
        place = f"{problem.filename}: " if problem.filename else ""
        return _fail(f"error: {place}{problem.strerror or problem}", WRONG_INPUT)
    except Exception:
        if not was_terminated():
            raise  # a bug of ours must stay visible
        return _fail("interrupted", TERMINATED)
    return code


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Hide warnings, which libraries and models address to programmers, unless Python was told to show them (-W)."""
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        yield


def _run(argv: Sequence[str]) -> int:
    from cyclopts import CycloptsError

    from butfor.cli.app import app

    try:
        result = app(list(argv), exit_on_error=False, print_error=False, result_action="return_value", backend=None)
    except CycloptsError as problem:
        raise InputError(_usage_error(problem, argv)) from problem
    return result if isinstance(result, int) else 0


def _usage_error(problem: Exception, argv: Sequence[str]) -> str:
    """What is wrong with the command line, in one line, and where to get help."""
    from cyclopts import UnknownOptionError, UnusedCliTokensError

    from butfor.cli.app import COMMANDS

    message = " ".join(str(problem).split())
    if isinstance(problem, UnknownOptionError):
        message = _without_far_guess(message, problem.token.keyword or problem.token.value)
    if isinstance(problem, UnusedCliTokensError) and problem.unused_tokens:
        message = f"Unexpected argument {problem.unused_tokens[0]!r}."
    command = f" {argv[0]}" if argv and argv[0] in COMMANDS else ""
    stop = "" if message.endswith((".", "?")) else "."
    return f"{message}{stop} See: butfor{command} --help"


def _without_far_guess(message: str, option: str) -> str:
    """The message about an unknown option without the one that it suggests, if the two are not much alike.

    Cyclopts compares them with their dashes, which all options share: --frobnicate would be a --certificate.
    """
    guess = re.search(r" Did you mean --(\S+)\?$", message)
    if guess is None:
        return message
    alike = SequenceMatcher(None, option.lstrip("-"), guess.group(1)).ratio() >= ALIKE
    return message if alike else message[: guess.start()]


def _fail(message: str, code: int) -> int:
    print(printable(" ".join(message.split())), file=sys.stderr)
    return code


def _discard_output() -> None:
    """Redirect standard output to nowhere: Python flushes it once more at exit and would fail again."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
