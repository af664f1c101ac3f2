"""Text from files, made fit for a terminal."""

from __future__ import annotations

from butfor.boundary.printable import printable


def test_what_can_be_read_stays_as_it_is() -> None:
    assert printable("node 3–4 “größer” 漢字 🙂") == "node 3–4 “größer” 漢字 🙂"


def test_what_would_do_something_to_a_terminal_is_written_out() -> None:
    escapes = "\x1b[2J\x1b]0;owned\x07\u202eevil\x9b31m\r\nsecond line\u2028"
    assert printable(escapes) == r"\x1b[2J\x1b]0;owned\x07\u202eevil\x9b31m\r\nsecond line\u2028"
