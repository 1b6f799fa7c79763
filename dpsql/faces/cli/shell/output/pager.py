"""Long answers through the user's pager, and texts through the user's editor: programs that the environment names."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dpsql.diagnostics.errors import reject
from dpsql.faces.cli.inputs import read_file


def page(text: str) -> None:
    """Show a text in `DPSQL_PAGER`, else `PAGER`, else less; as it is if there is none. Returns when it is closed.

    An empty variable means no pager. less runs with -FRX unless LESS says otherwise, and can start no programs.
    """
    command = pager_command()
    if command:
        environment = {"LESS": "-FRX", **os.environ, "LESSSECURE": "1"}
        with contextlib.suppress(OSError), _ignoring_interrupts():
            running = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8")
            with contextlib.suppress(OSError):  # it was closed before it had read everything
                running.communicate(text)
            running.wait()
            return
    sys.stdout.write(text)
    sys.stdout.flush()


def pager_command() -> list[str]:
    """The words of the pager's command; empty if there is none."""
    wanted = next((os.environ[name] for name in ("DPSQL_PAGER", "PAGER") if name in os.environ), "less")
    return _words(wanted)


def edited(text: str) -> str:
    """What the user makes of a text in his editor (`VISUAL`, `EDITOR`, else vi).

    The text lies in a file that only he can read, and that is removed. Raises Rejected DP903.
    """
    command = _words(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    if not command or shutil.which(command[0]) is None:
        raise reject(
            "DP903", f"the editor {' '.join(command)!r} cannot be found", help=["name yours in the variable EDITOR"]
        )
    with tempfile.TemporaryDirectory(prefix="dpsql-edit-") as folder:  # mode 0700
        path = Path(folder) / "query.sql"
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        with _ignoring_interrupts():
            try:
                status = subprocess.run([*command, str(path)], check=False).returncode
            except OSError:
                status = -1
        if status != 0:
            raise reject("DP903", "the editor failed, so the text stays as it was")
        return read_file(str(path)).text.rstrip("\n")


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quote
        return command.split()


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Ctrl-C is for the program that runs now, not for the shell."""
    before = signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN: the program would inherit that
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
