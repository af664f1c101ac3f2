"""Write `docs/reference/command-line.md` from the commands themselves: python docs/scripts/command_line.py"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from butfor.cli import main
from butfor.cli.app import COMMANDS, app

PAGE = Path(__file__).parents[1] / "reference" / "command-line.md"

HEAD = """# The command line

`pip install 'butfor[cli]'` brings the command `butfor`. `butfor COMMAND --help` prints what this page says, and
`butfor --version` the version. Results and tables go to standard output, progress and notes to standard error.

The exit code says how a command ended:

{exit_codes}

"""

# What one method makes of a flag that several have.
USE = r"For [\w-]+: [^\[]*\[default: [^\]]*\]\. ?"


def page() -> str:
    """What all commands have in common, then each with its examples and options."""
    # The usage of this one command has the arguments of the running program in it.
    told = re.sub(r"^(butfor --install-completion).*(?= \[OPTIONS\])", r"\1", app.generate_docs(), flags=re.MULTILINE)
    listed, *parts = re.split(r"^(?=## butfor )", told[told.index("**Commands**") :], flags=re.MULTILINE)
    sections = {part.split("\n", 1)[0].removeprefix("## butfor "): part for part in parts}
    named = [_with_examples(name, sections.pop(name)) for name in COMMANDS]
    parts = [HEAD.format(exit_codes=_exit_codes()), listed, *named, *sections.values()]
    whole = "\n\n".join(part.strip() for part in parts) + "\n"
    whole = re.sub(r"(?<!\*)(\[default: [^\]]*\])", r"*\1*", whole)  # as cyclopts sets the defaults that it knows
    return re.sub(r" +$", "", whole, flags=re.MULTILINE)


def _exit_codes() -> str:
    _, codes = inspect.cleandoc(main.__doc__ or "").split("\n\n")
    return "\n".join(f"- {code}" for code in " ".join(codes.split()).rstrip(".").split("; "))


def _with_examples(name: str, section: str) -> str:
    command = COMMANDS[name]
    lines = "".join(f"$ {line}\n" for line in command.examples)
    section = section.replace(f"\n{command.summary}\n", f"\n{command.summary}\n\n```console\n{lines}```\n", 1)
    head, *methods = re.split(r"^(?=\*\*Hyper-parameters of --method )", section, flags=re.MULTILINE)
    return head + "".join(map(_only_own_uses, methods))


def _only_own_uses(section: str) -> str:
    """The flags of one method, without what other methods make of the same flags."""
    (method,) = re.findall(r"^\*\*Hyper-parameters of --method ([\w-]+)\*\*", section)

    def own(uses: re.Match[str]) -> str:
        (mine,) = [use for use in re.findall(USE, uses[0]) if use.startswith(f"For {method}: ")]
        return str(re.sub(r" (\[default: [^\]]*\])\. ?$", r". \1 ", mine.removeprefix(f"For {method}: ")))

    return re.sub(rf"(?:{USE})+", own, section)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
