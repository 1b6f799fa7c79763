"""Starting the shell: options, environment and configuration to a state; then a prompt, or an input to its end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

import dpsql
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.faces.cli import exits
from dpsql.faces.cli.shell.command import ShellOptions
from dpsql.faces.cli.shell.commands import accounts
from dpsql.faces.cli.shell.commands.query_commands import kept_files
from dpsql.faces.cli.shell.commands.running import Cancelled
from dpsql.faces.cli.shell.commands.set_commands import assign
from dpsql.faces.cli.shell.input.history import History, default_path
from dpsql.faces.cli.shell.input.run_input import Step, interactive, run_steps, run_stream
from dpsql.faces.cli.shell.looks import Looks, changed
from dpsql.faces.cli.shell.output.output import TerminalOutput
from dpsql.faces.cli.shell.output.wrapping import wrapped_lines
from dpsql.faces.cli.shell.shell_config import Config, from_environment, load_config
from dpsql.faces.cli.shell.state import Shell
from dpsql.frontend.parse import require_dialect
from dpsql.policy.tools.unsaid import unsaid
from dpsql.service.privacy_settings import switch


def run(options: ShellOptions, steps: Sequence[Step]) -> int:
    """The exit code. steps: `-c` and `-f` in their order.

    Raises dpsql.Error: something cannot be opened; or, away from a prompt, the first failure.
    """
    prompting = not steps and interactive()
    config = Config() if options.no_config else load_config()
    texts = {**config.texts, **from_environment(), **_given(options)}
    policy = texts.get("policy")
    if policy is None:
        raise reject("DP903", "no policy was given", help=["dpsql shell POLICY,  or name it in DPSQL_POLICY"])
    require_dialect(texts.get("dialect", "duckdb"))
    looks = _looks(options, config.looks if prompting else Looks())
    dearer = texts.get("allow_dearer")
    with dpsql.connect(
        policy,
        analyst=texts.get("analyst"),
        ledger=texts.get("ledger"),
        epsilon=texts.get("epsilon"),
        delta=texts.get("delta"),
        allow_dearer=None if dearer is None else switch(dearer, "allow_dearer"),
        limits=texts.get("limits"),
        draft=options.draft,
        threads=options.threads,
        memory_limit=options.memory_limit,
    ) as connection:
        shell = Shell(
            connection,
            analyst=texts.get("analyst"),
            looks=looks,
            dialect=texts.get("dialect", "duckdb"),
            prompting=prompting,
            quiet=options.quiet,
            yes=options.yes,
            output=TerminalOutput(paged=prompting),
        )
        for name, value in config.variables.items():
            assign(shell, name, value)
        for text in options.variable or ():
            name, equals, value = text.partition("=")
            assign(shell, name, value if equals else "")
        accounts.tightest(shell)  # a ledger that cannot be used is said now
        if options.output is not None:
            shell.output.open(options.output, kept_files(shell))
        try:
            return _run(shell, options, steps, config)
        finally:
            shell.output.close()


def _run(shell: Shell, options: ShellOptions, steps: Sequence[Step], config: Config) -> int:
    if not shell.prompting:
        try:
            if steps:
                run_steps(shell, steps)
            else:
                run_stream(shell, sys.stdin)
        except Cancelled as stopped:
            exits.say(str(stopped))
            return exits.INTERRUPTED
        return exits.OK
    from dpsql.faces.cli.shell.input.loop import run_prompt

    shell.history = _history(options, config)
    shell.confirm = confirmed
    if not shell.quiet:
        _greet(shell)
    with _HangUp():
        return run_prompt(shell, vi=config.vi, complete_while_typing=config.complete_while_typing)


def _given(options: ShellOptions) -> dict[str, str]:
    names = ("policy", "analyst", "ledger", "epsilon", "delta", "allow_dearer", "limits", "dialect")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    return {name: ("on" if value else "off") if isinstance(value, bool) else value for name, value in given.items()}


def _looks(options: ShellOptions, looks: Looks) -> Looks:
    for text in options.pset or ():
        name, equals, value = text.partition("=")
        looks = changed(looks, name, value if equals else None)
    if options.shown_as is not None:
        looks = changed(looks, "format", options.shown_as)
    if options.tuples_only:
        looks = replace(looks, tuples_only=True)
    if options.expanded:
        looks = replace(looks, expanded=True)
    return looks


def _history(options: ShellOptions, config: Config) -> History | None:
    named = os.environ.get("DPSQL_HISTORY", "")
    if options.no_history or not config.history or named.lower() in ("off", "no", "0"):
        return None
    try:
        return History(Path(named).expanduser() if named else default_path())
    except RuntimeError:  # a home folder that nobody knows
        return History(None)


def _greet(shell: Shell) -> None:
    who = f"analyst {shell.analyst}" if shell.analyst is not None else "no analyst named"
    if shell.analyst is not None and shell.connection.analyst != shell.analyst:
        who += f", charged to the shared account {shell.connection.analyst}"
    name = one_line(shell.connection.policy.name)
    said = f"dpsql {dpsql.__version__}: policy {name}, {one_line(who)}. \\? for help, \\q to leave."
    if free := shell.connection.service.free:
        said += f" {free}."
    print("\n".join(wrapped_lines(said, shell.output.columns)))
    if warnings := unsaid(shell.connection.policy):
        exits.complain(warnings)
    if shell.history is not None and not shell.history.durable:
        exits.say("the history file cannot be used, so nothing is kept after this shell")


def confirmed(question: str) -> bool:
    """Ask at the terminal; anything but yes is no. Raises KeyboardInterrupt."""
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    said = sys.stdin.readline()
    if not said.endswith("\n"):  # Ctrl-D, which ends no line
        sys.stdout.write("\n")
    return said.strip().lower() in ("y", "yes")


SECONDS_TO_LEAVE: Final = 2.0


class _HangUp:
    """While it is entered, a terminal that goes away stops a query as Ctrl-C does, and ends the shell.

    What is raised while Python destroys an object is lost, so it is raised again until this is left.
    """

    def __enter__(self) -> None:
        self._again = hasattr(signal, "setitimer")
        names = ("SIGHUP", "SIGTERM", "SIGALRM")
        known = [found for name in names if (found := getattr(signal, name, None)) is not None]
        self._before = {number: signal.signal(number, self._leave) for number in known}

    def __exit__(self, *exception: object) -> None:
        if self._again:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        if self._again:
            signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_LEAVE)
        raise SystemExit(exits.INTERRUPTED)
