"""The entry point: runs a command and turns whatever leaves it into an exit code and a message, never a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer

from dpsql.diagnostics.errors import Error
from dpsql.faces.cli import exits

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
_PARSER_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. arguments: without the program's name; None: `sys.argv`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_streams()
    try:
        status = _run(given)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has gone, as in `… | head`
        pass
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        exits.complain([exits.usage_error(f"reading or writing failed: {reason}")])
    # What is still in the buffer cannot be written either, and Python would complain when it exits.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.CHECK_IMPOSSIBLE if _is_check(given) else exits.USAGE


def _is_check(given: Sequence[str]) -> bool:
    """Whether 1 means findings."""
    return given[:1] in (["check"], ["diff"]) or given[:2] == ["policy", "verify"]


def _run(given: list[str]) -> int:
    checking = _is_check(given)
    auditing = given[:1] == ["audit"]  # 1 means refuted there, and nothing else
    failed = exits.CHECK_IMPOSSIBLE if checking or auditing else exits.USAGE
    try:
        command = _every_command()
        if given and given[0] not in getattr(command, "commands", ()) and _is_policy(given[0]):
            given = ["shell", *given]  # `dpsql clinic.yaml`
        result = command.main(args=given, prog_name="dpsql", standalone_mode=False)
        if result == exits.INTERRUPTED:  # typer turns Ctrl-C into this code, and says nothing
            exits.say(exits.interrupted())
        return result if isinstance(result, int) else exits.OK
    except (KeyboardInterrupt, typer.Abort):
        exits.say(exits.interrupted())
        return exits.INTERRUPTED
    except typer.Exit as stop:
        return int(stop.exit_code)
    except SystemExit as stop:
        # With a code it comes from the option parser, when the reader of our output has gone.
        return stop.code if isinstance(stop.code, int) and not checking else failed
    except _USAGE_ERROR as error:
        help = f"{_command_path(error)} --help"
        if any(word.startswith("--") and any(map(str.isspace, word)) for word in given):
            help = "a query that begins with a comment is read from a file:  -f FILE,  or from standard input:  -"
        exits.complain([exits.usage_error(_words(error).split("\n")[0], help)])
        return failed
    except _PARSER_ERROR as error:
        exits.complain([exits.usage_error(_words(error))])
        return failed
    except Error as error:
        exits.complain(error.diagnostics)
        status = exits.status_of(error)
        return failed if checking or (auditing and status == exits.USAGE) else status
    except OSError:  # of the terminal, a pipe or a disk; none of dpsql's own
        raise
    except Exception:
        exits.complain([exits.internal_error()])
        return failed


@cache
def _every_command() -> Any:
    """Every command with its options, made once in a process: it takes longer than most refusals."""
    from dpsql.faces.cli.app import app

    return typer.main.get_command(app)


def _is_policy(argument: str) -> bool:
    """Whether a first argument that is no command can only be the policy of a shell."""
    return os.path.isfile(argument) or (argument.endswith((".yaml", ".yml")) and not argument.startswith("-"))


def _command_path(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return str(context.command_path) if context is not None else "dpsql"


def _words(error: Any) -> str:
    return str(error.format_message()).replace("Value error, ", "")  # some versions of typer say so


def _prepare_streams() -> None:
    """Closed streams are opened, so that no data file takes their number; characters that a stream's encoding does
    not have (ε on an old console) are replaced, not an error."""
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
