"""Where results go: the terminal (through a pager if they are long), a pipe, or the file of `\\o`."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import text_width
from dpsql.faces.cli.exits import wants_color
from dpsql.faces.cli.shell.output.pager import page


class TerminalOutput:
    """Takes texts. paged: whether there may be a pager: at a prompt only."""

    def __init__(self, paged: bool = False) -> None:
        self._paged = paged
        self._file: TextIO | None = None
        self.name: str | None = None

    @property
    def stream(self) -> TextIO:
        """What is written to, pagers apart."""
        return self._file or sys.stdout

    @property
    def color(self) -> bool:
        """Whether colours may be used."""
        return wants_color(self.stream)

    @property
    def columns(self) -> int | None:
        """The width of the terminal; None if this is none."""
        return shutil.get_terminal_size().columns if self.stream.isatty() else None

    def write(self, text: str, pager: str = "off", footer: str = "") -> None:
        """A text that ends with its line end, and lines below it, which are folded on a terminal.

        pager: `on` for long texts, `always`, or `off`.
        """
        if footer.strip() and self.columns is not None:
            footer = "\n".join(self._folded(line, self.columns) for line in footer.split("\n"))
        if self._file is None and self._paged and pager != "off" and (pager == "always" or too_long(text + footer)):
            page(text + footer)
            return
        self.stream.write(text + footer)
        self.stream.flush()

    @staticmethod
    def _folded(line: str, columns: int) -> str:
        below = "    " if line.startswith(" ") else ""
        return textwrap.fill(line, columns, subsequent_indent=below, break_on_hyphens=False)

    def line(self, text: str) -> None:
        """One line, never paged."""
        self.write(f"{text}\n")

    def tell(self, text: str) -> None:
        """A remark about the shell itself, for whoever reads along: not for the file of `\\o`, which holds answers."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def open(self, path: str, kept: Sequence[Path] = ()) -> None:
        """Write to a file from now on. kept: files that are to be made by others, like the ledger and its companions.

        Raises Rejected DP903: it exists already, or cannot be written.
        """
        opened = open_new(path, kept)
        self.close()
        self._file, self.name = opened, path

    def close(self) -> None:
        """Write to standard output again."""
        if self._file is not None:
            file, self._file, self.name = self._file, None, None
            file.close()


def open_new(path: str, kept: Sequence[Path] = (), mode: int = 0o666) -> TextIO:
    """A file for answers: a new one, or something that is no regular file, such as /dev/null.

    Nothing is overwritten, for it could be a ledger, and nothing is put where one is going to be: `kept` names that,
    and files of the same folder whose names begin so. mode: who may read it, less the umask.
    Raises Rejected DP903, DP906.
    """
    if path.lstrip().startswith("|"):
        raise reject(
            "DP906", "answers are not piped into programs from within the shell",
            help=["write to a file, or pipe the whole shell:  dpsql shell POLICY -c SQL | program"],
            notes=["the shell starts no programs for what is typed at its prompt"],
        )  # fmt: skip
    try:
        where = Path(path).expanduser()
        real = where.resolve()
        if any(real.parent == k.resolve().parent and real.name.startswith(k.name) for k in kept):
            raise reject("DP903", f"{path!r} is where the ledger keeps its accounts", help=["write to another file"])
        opened = _made(where, mode) or _device(where)
        if opened is not None:
            return opened
        raise reject("DP903", f"{path!r} exists already", help=["remove it first, or write to another file"])
    except OSError as error:
        reason = (error.strerror or os.strerror(error.errno or 0)).lower()
    except (ValueError, RuntimeError):  # a NUL in it; a home folder that nobody knows
        reason = "its name is not valid"
    raise reject("DP903", f"{path!r} cannot be written: {reason}")


def _made(where: Path, mode: int) -> TextIO | None:
    """A file that was not there before, also if somebody else makes one at the same moment; None if it was."""
    try:
        return open(where, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode))
    except FileExistsError:
        return None


def _device(where: Path) -> TextIO | None:
    """What is no regular file, such as a pipe; None for one, which is never emptied, not even if it just came there."""
    if stat.S_ISREG(where.stat().st_mode):
        return None
    number = os.open(where, os.O_WRONLY)  # neither made nor emptied
    if not stat.S_ISREG(os.fstat(number).st_mode):
        return os.fdopen(number, "w", encoding="utf-8")
    os.close(number)
    return None


def too_long(text: str) -> bool:
    """Whether a text does not fit on the terminal, whose long lines go on in the next."""
    size = shutil.get_terminal_size()
    lines = text.rstrip("\n").split("\n")
    return sum(max(1, -(-line_width(line) // max(1, size.columns))) for line in lines) >= size.lines


def line_width(line: str) -> int:
    """Screen columns of a line, ANSI codes apart."""
    if "\x1b" in line:
        line = _without_codes(line)
    return text_width(line)


def _without_codes(line: str) -> str:
    first, *others = line.split("\x1b[")
    return first + "".join(part.partition("m")[2] for part in others)
