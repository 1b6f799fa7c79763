"""Doing what an input says, item by item: from `-c`, files, pipes and `\\i`; and what follows when something fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TextIO

from dpsql.diagnostics.errors import Error, reject
from dpsql.faces.cli import exits
from dpsql.faces.cli.inputs import one_query, read_file
from dpsql.faces.cli.shell.commands.all_commands import run_command
from dpsql.faces.cli.shell.commands.run_statement import run_statement
from dpsql.faces.cli.shell.commands.running import Cancelled
from dpsql.faces.cli.shell.input.items import Feed, Item, Meta, Sql
from dpsql.faces.cli.shell.state import Shell

Step = tuple[Literal["command", "file"], str]
"""`-c SQL` or `-f FILE`."""

_ON: Final = ("on", "true", "1", "")


def perform(shell: Shell, item: Item) -> None:
    """Do one thing. Raises dpsql.Error, KeyboardInterrupt, OSError."""
    match item:
        case Sql():
            run_statement(shell, item.text, item.place)
        case Meta():
            run_command(shell, item)


def run_text(shell: Shell, text: str, name: str) -> None:
    """Everything in a text. Raises the first error, if errors stop it; else they are printed."""
    outer, shell.feed = shell.feed, Feed(name, shell.dialect)
    shell.depth += 1
    try:
        run_items(shell, shell.feed.take(text))
        if not shell.done:
            run_items(shell, shell.feed.finish())
    finally:
        shell.feed = outer
        shell.depth -= 1


def run_items(shell: Shell, items: Iterable[Item]) -> None:
    """Do things in order, until `\\q`, or until the first error if errors stop it (else they are printed)."""
    for item in items:
        if stops_at_errors(shell) and (shell.depth or not shell.prompting):
            perform(shell, item)
        elif guarded(shell, item) == exits.INTERRUPTED:
            shell.feed.drop()  # of several statements that were pasted, none is run after a Ctrl-C
            return
        if shell.done:
            return


def guarded(shell: Shell, item: Item) -> int:
    """Do one thing and print what goes wrong; the exit code that it stands for.

    Raises BrokenPipeError; KeyboardInterrupt, unless it stops what was typed at a prompt.
    """
    try:
        perform(shell, item)
        return exits.OK
    except Error as error:
        exits.complain(error.diagnostics)
        return exits.status_of(error)
    except KeyboardInterrupt as stopped:
        if shell.depth or not shell.prompting:
            raise
        exits.say(f"\n{stopped if isinstance(stopped, Cancelled) else 'cancelled'}")
        return exits.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        exits.complain([exits.usage_error(f"reading or writing failed: {reason}")])
        return exits.USAGE
    except Exception:
        exits.complain([exits.internal_error()])
        return exits.USAGE


def stops_at_errors(shell: Shell) -> bool:
    """By default: away from a prompt. The variable ON_ERROR_STOP decides otherwise."""
    wanted = shell.variables.get("ON_ERROR_STOP")
    return not shell.prompting if wanted is None else wanted.lower() in _ON


def run_steps(shell: Shell, steps: Sequence[Step]) -> None:
    """`-c` and `-f` in their order. Raises dpsql.Error, KeyboardInterrupt."""
    for kind, text in steps:
        if shell.done:
            return
        if kind == "command":
            run_text(shell, one_query(text, None).text if text != "-" else text, "<sql>")
        elif text == "-":
            run_stream(shell, sys.stdin)
        else:
            source = read_file(text)
            run_text(shell, source.text, source.name)
    shell.done = True


def run_stream(shell: Shell, stream: TextIO) -> None:
    """Lines as they come, each statement as soon as it is complete. Raises dpsql.Error, KeyboardInterrupt."""
    shell.feed = Feed("<stdin>", shell.dialect)
    for line in _lines(stream):
        run_items(shell, shell.feed.take(line))
        if shell.done:
            return
    run_items(shell, shell.feed.finish())


def _lines(stream: TextIO) -> Iterator[str]:
    """The lines of a UTF-8 stream without their ends. Raises Rejected DP903 for what is no text."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8-sig", errors="strict")
    try:
        for line in stream:
            if "\x00" in line:
                break
            yield line.rstrip("\r\n")
        else:
            return
    except UnicodeDecodeError:
        pass
    raise reject("DP903", "<stdin> is not UTF-8 text", help=["save it as UTF-8"])


def interactive() -> bool:
    """Whether somebody sits at a terminal and reads on it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def smart() -> bool:
    """Whether that terminal can move its cursor."""
    return os.environ.get("TERM", "dumb") not in ("dumb", "")
