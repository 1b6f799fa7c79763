"""Reading at a prompt: with editing, colours and completion on a terminal that can, line by line on one that cannot."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Final

from dpsql.faces.cli import exits
from dpsql.faces.cli.shell.input.items import DOTTED, Feed, InputPlace, Meta, command_behind
from dpsql.faces.cli.shell.input.prompt import continuation_text, prompt_text
from dpsql.faces.cli.shell.input.run_input import run_items, smart
from dpsql.faces.cli.shell.state import Shell
from dpsql.frontend.text.unfinished import ends_outside, is_empty, scan

_BARE: Final = {"help": "\\?", "quit": "\\q", "exit": "\\q"}
"""Words that psql, too, takes for meta-commands when they are all that is typed at an empty prompt."""

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History as ToolkitHistory
    from prompt_toolkit.key_binding import KeyBindings


def run_prompt(shell: Shell, *, vi: bool = False, complete_while_typing: bool = False) -> int:
    """Read and do until `\\q` or Ctrl-D; the exit code, 0. Ctrl-C at the prompt clears what was typed."""
    read = _editing(shell, vi, complete_while_typing) if smart() else _plain
    while not shell.done:
        try:
            if not shell.feed.waiting:
                shell.feed = Feed("<sql>", shell.dialect)
            try:
                text = read(shell)
            except (EOFError, OSError):  # Ctrl-D; or the terminal has gone
                if not shell.quiet:
                    exits.say("\\q")
                break
            if shell.history is not None:
                shell.history.add(text)
            meant = bare_word(text, shell.feed.pending)
            if meant is None and is_look(text, shell.feed.pending):
                meant = text.strip()
            run_items(shell, shell.feed.take(text) if meant is None else [Meta(meant, InputPlace())])
        except KeyboardInterrupt:  # wherever it comes, it never leaves the shell
            shell.feed.drop()
            if not smart():
                exits.say("")
    return exits.OK


def finished(text: str, pending: str, dialect: str) -> bool:
    """Whether Enter hands an input over: it is a meta-command, or ends with the semicolon of a statement."""
    if bare_word(text, pending) is not None:
        return True
    if is_look(text, pending):
        return ends_outside(text, dialect)
    if DOTTED.match(text) and is_empty(pending, dialect):
        return True
    whole = (pending + text).rstrip()
    if not text.strip() or is_empty(whole, dialect):
        return True
    before, _, last = whole.rpartition("\n")
    if last.strip().startswith("\\") and ends_outside(f"{before}\n", dialect):
        return True
    if command_behind(last, f"{before}\n", dialect) is not None:
        return True
    found = scan(whole, dialect)
    if found is None or not found.rest:
        return False
    rest = whole[found.rest :]
    return is_empty(rest, dialect) or rest.strip().startswith("\\")


def bare_word(text: str, pending: str) -> str | None:
    """The meta-command that `help`, `quit` or `exit` stands for, if it is the whole of an input."""
    return None if pending.strip() else _BARE.get(text.strip().rstrip(";").rstrip().lower())


def is_look(text: str, pending: str) -> bool:
    """Whether an input is `\\explain` or `\\cost` with a query, which may have several lines."""
    return not pending and text.lstrip().startswith(("\\explain ", "\\cost "))


def _plain(shell: Shell) -> str:
    """A line, from a terminal that can do nothing else."""
    sys.stdout.write(continuation_text(shell, shell.feed.pending) if shell.feed.waiting else prompt_text(shell))
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


class _Editing:
    """A prompt of prompt_toolkit, made once."""

    def __init__(self, session: PromptSession[str]) -> None:
        self._session = session

    def __call__(self, shell: Shell) -> str:
        default, shell.edit = shell.edit, ""
        begun = shell.feed.waiting
        # At the prompt Ctrl-C is a key. As a signal it comes only just before, where there is nothing to clear, or just
        # after, where it is about what was typed; inside of the line editor or asyncio it would break them.
        pressed: list[int] = []
        handler = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
        try:
            text = self._session.prompt(
                continuation_text(shell, shell.feed.pending) if begun else prompt_text(shell),
                default=default,
                # a long line that goes on below it is one line: nothing stands before its rest
                prompt_continuation=lambda width, line, wrapped: "" if wrapped else self._continued(shell, width, line),
                pre_run=pressed.clear,
                handle_sigint=False,
            )
        finally:
            signal.signal(signal.SIGINT, handler)
        if pressed:
            raise KeyboardInterrupt
        return text

    def _continued(self, shell: Shell, width: int, line: int) -> str:
        """What stands before a further line of the input."""
        above = self._session.default_buffer.document.lines[:line]
        return continuation_text(shell, shell.feed.pending + "\n".join(above), width)


def _editing(shell: Shell, vi: bool, complete_while_typing: bool) -> _Editing:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.enums import EditingMode
    from prompt_toolkit.lexers import PygmentsLexer
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.styles import Style, style_from_pygments_dict

    from dpsql.faces.cli.shell.input.completion import ShellCompleter
    from dpsql.faces.cli.shell.input.highlight import STYLE, ShellLexer

    colored = exits.wants_color(sys.stdout)
    session: PromptSession[str] = PromptSession(
        multiline=True,
        lexer=PygmentsLexer(ShellLexer) if colored else None,
        style=style_from_pygments_dict(STYLE) if colored else Style([]),
        color_depth=None if colored else ColorDepth.DEPTH_1_BIT,
        completer=ShellCompleter(shell),
        complete_while_typing=complete_while_typing,
        history=_toolkit_history(shell),
        key_bindings=_keys(shell),
        editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
        enable_suspend=True,
        include_default_pygments_style=False,
    )
    return _Editing(session)


def _keys(shell: Shell) -> KeyBindings:
    """Enter hands over what is complete and begins a new line otherwise; Alt-Enter always begins one."""
    from prompt_toolkit.filters import has_completions, has_focus, is_done, is_searching
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()
    typing = has_focus("DEFAULT_BUFFER") & ~is_searching & ~is_done

    @keys.add("enter", filter=typing)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if has_completions() and buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif finished(buffer.text, shell.feed.pending, shell.dialect):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("escape", "enter", filter=typing)
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys


def _toolkit_history(shell: Shell) -> ToolkitHistory:
    """prompt_toolkit's view of our history: it reads, and we write."""
    from prompt_toolkit.history import InMemoryHistory

    return InMemoryHistory(shell.history.entries() if shell.history is not None else [])
