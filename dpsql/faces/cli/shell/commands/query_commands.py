"""Meta-commands about queries and their text: run, price, explain, edit, read from files, write to files."""

from __future__ import annotations

import glob
import os
from dataclasses import replace
from pathlib import Path

from dpsql.api.session_statements import Explain, special
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Error, reject
from dpsql.diagnostics.layout import printable
from dpsql.diagnostics.words import small
from dpsql.faces.cli.inputs import read_file
from dpsql.faces.cli.shell.commands import batch_commands as batches
from dpsql.faces.cli.shell.commands import run_statement as statements
from dpsql.faces.cli.shell.commands import running
from dpsql.faces.cli.shell.input.items import InputPlace
from dpsql.faces.cli.shell.input.meta_words import words
from dpsql.faces.cli.shell.output.output import TerminalOutput, open_new
from dpsql.faces.cli.shell.output.pager import edited
from dpsql.faces.cli.shell.state import Shell
from dpsql.frontend.text.unfinished import ends_outside, is_empty, with_variables

MOST_DEPTH = 16
"""Files that may be open within one another."""


def leave(shell: Shell, arguments: list[str]) -> None:
    """Leave."""
    shell.done = True


def go(shell: Shell, arguments: list[str]) -> None:
    """Run what was typed, else the last query; its answer goes to a new file if one is named."""
    text, place = _current(shell, shell.last)
    shell.feed.drop()
    if not arguments:
        statements.run_statement(shell, text, place)
        return
    before, shell.output = shell.output, TerminalOutput()
    try:
        shell.output.open(_file(shell, arguments[0]), kept_files(shell))  # before anything is paid for
        statements.run_statement(shell, text, place)
    finally:
        shell.output.close()
        shell.output = before


def _file(shell: Shell, text: str) -> str:
    """The name of a file behind a command. Raises Rejected DP903 for several, DP906 for a program."""
    if text.lstrip().startswith("|"):
        return text  # which is refused as everywhere
    found, more = words(text.rstrip().rstrip(";"), shell.variables.get)
    if len(found) != 1 or more:
        raise reject("DP903", "\\g takes nothing or the name of one new file", help=["\\g answer.txt"])
    return found[0]


def go_expanded(shell: Shell, arguments: list[str]) -> None:
    """As `go`, one line a value."""
    before = shell.looks
    shell.looks = replace(before, expanded=True)
    try:
        go(shell, arguments)
    finally:
        shell.looks = before


def _current(shell: Shell, before: tuple[str, InputPlace] | None) -> tuple[str, InputPlace]:
    """What was typed and is not finished, else what ran before. Raises Rejected DP903."""
    pending = shell.feed.pending
    if not is_empty(pending, shell.dialect):
        return pending.strip(), shell.feed.place
    if before is None:
        raise reject("DP903", "there is no query yet", help=["type one, ended by ;"])
    return before


def explain(shell: Shell, arguments: list[str]) -> None:
    """The plan of the given query, else of the one that was typed or ran last."""
    _look(shell, arguments, statements.explain)


def cost(shell: Shell, arguments: list[str]) -> None:
    """The price of it."""
    _look(shell, arguments, statements.cost)


def _look(shell: Shell, arguments: list[str], show: statements.Look) -> None:
    text, place = (arguments[0], InputPlace()) if arguments else _current(shell, shell.query)
    sql = with_variables(text, shell.variables.get, shell.dialect).strip()
    while sql.endswith(";"):
        sql = sql[:-1].rstrip()
    try:
        meant = special(sql, shell.dialect)
        show(shell, meant.sql if isinstance(meant, Explain) else sql, place)
    except Error as error:
        raise running.located(error, sql, place) from None


def batch(shell: Shell, arguments: list[str]) -> None:
    """The queries of a file, measured together. Raises dpsql.Error."""
    file, *wanted = arguments or [""]
    if not file or not set(wanted) <= {"skip", "explain"}:
        raise reject("DP903", "\\batch needs a file", help=["write  \\batch FILE [skip] [explain]"])
    source = read_queries(shell, Path(file))
    text = with_variables(source.text, shell.variables.get, shell.dialect)
    found = shell.connection.batch_of(text, source.name, skip_refused="skip" in wanted)
    (batches.explain if "explain" in wanted else batches.do)(shell, found)


def show_pending(shell: Shell, arguments: list[str]) -> None:
    """Print it."""
    shell.output.line(printable(_current(shell, shell.last)[0]))


def reset(shell: Shell, arguments: list[str]) -> None:
    """Forget it."""
    shell.feed.drop()
    if shell.prompting and not shell.quiet:
        shell.output.tell("What was typed is forgotten.")


def edit(shell: Shell, arguments: list[str]) -> None:
    """Put what the editor makes of it at the next prompt, where Enter runs it if it ends with a semicolon.

    The last query has one; what was typed has as much as was typed.
    """
    if not shell.prompting:
        raise reject("DP903", "\\e needs a prompt", help=["edit the file that is read instead"])
    changed = edited(read_queries(shell, Path(arguments[0])).text if arguments else _to_edit(shell))
    shell.feed.drop()
    shell.edit = changed


def _to_edit(shell: Shell) -> str:
    """What was typed, else the last query and the semicolon that it was run by, which is no part of it."""
    pending = shell.feed.pending
    if not is_empty(pending, shell.dialect) or shell.last is None:
        return pending.strip()
    text = shell.last[0]
    return f"{text};" if ends_outside(text, shell.dialect) else f"{text}\n;"  # which a comment would swallow


def include(shell: Shell, arguments: list[str]) -> None:
    """Run a file."""
    _include(shell, arguments, "\\i", Path())


def include_relative(shell: Shell, arguments: list[str]) -> None:
    """Run a file whose name counts from the folder of the file that is read."""
    name = shell.feed.name
    _include(shell, arguments, "\\ir", Path(name).parent if shell.depth and not name.startswith("<") else Path())


def _include(shell: Shell, arguments: list[str], command: str, base: Path) -> None:
    from dpsql.faces.cli.shell.input.run_input import run_text  # which runs meta-commands, and so loads this module

    if not arguments:
        raise reject("DP903", f"{command} needs a file", help=[f"write  {command} FILE"])
    if shell.depth >= MOST_DEPTH:
        raise reject("DP903", f"more than {MOST_DEPTH} files read one another", help=["does a file read itself?"])
    source = read_queries(shell, base / Path(arguments[0]))
    run_text(shell, source.text, source.name)


def read_queries(shell: Shell, path: Path) -> Source:
    """A file of SQL. Raises Rejected DP906 for one of the policy's data: a refusal would quote its lines, DP903."""
    policy = shell.connection.policy
    sources = (t.source.absolute(policy.directory).paths for t in policy.tables.values() if t.source is not None)
    patterns = [pattern for paths in sources for pattern in paths]
    if policy.database_path is not None:
        patterns.append(glob.escape(str(policy.database_path)))
    if any(_same_file(path, held) for pattern in patterns for held in glob.iglob(pattern, recursive=True)):
        raise reject(
            "DP906", f"{str(path)!r} holds rows of the policy's tables, and is not read as SQL",
            help=["name a file of queries"],
        )  # fmt: skip
    return read_file(str(path))


def _same_file(one: Path, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # it is not there, or its name holds a NUL: reading it says so
        return False


def output(shell: Shell, arguments: list[str]) -> None:
    """Answers to a file, or to the screen again."""
    if arguments:
        shell.output.open(arguments[0], kept_files(shell))
    else:
        shell.output.close()


def kept_files(shell: Shell) -> tuple[Path, ...]:
    """Ledger and head, which may not be there yet; none for a ledger in memory."""
    place = shell.connection.ledger_place
    return () if place is None else place.files


def echo(shell: Shell, arguments: list[str]) -> None:
    """A text to standard output."""
    import sys

    sys.stdout.write(_text(arguments))
    sys.stdout.flush()


def echo_to_output(shell: Shell, arguments: list[str]) -> None:
    """A text to where answers go."""
    shell.output.write(_text(arguments))


def _text(words: list[str]) -> str:
    bare = words[:1] == ["-n"]
    return printable(" ".join(words[1:] if bare else words)) + ("" if bare else "\n")


def history(shell: Shell, arguments: list[str]) -> None:
    """The last inputs; or no more of them; or none."""
    kept = shell.history
    if kept is None:
        raise reject("DP903", "there is no history: it is kept at a prompt only, and not with --no-history")
    match arguments:
        case ["off"]:
            kept.stop()
            shell.output.tell("Nothing that follows is kept. \\history clear removes what is there.")
        case ["clear"]:
            kept.clear()
            shell.output.tell("The history is empty.")
        case [number] if number.isdecimal():
            count = small(number)
            _show(shell, kept.entries()[-count:] if count else [] if count == 0 else kept.entries())
        case []:
            _show(shell, kept.entries())
        case [other, *_]:
            with open_new(other, kept_files(shell), 0o600) as file:  # \s FILE, as in psql
                file.writelines(f"{entry}\n" for entry in kept.entries())


def _show(shell: Shell, entries: list[str]) -> None:
    text = "".join(f"{printable(entry)}\n" for entry in entries)
    shell.output.write(text, shell.looks.pager)
