"""What Tab offers at the prompt: SQL from the policy, meta-commands and their arguments. Never a value of a column."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dpsql.faces.cli.shell.commands.all_commands import COMMANDS
from dpsql.faces.cli.shell.looks import OPTIONS
from dpsql.functions.registry import describe_registry

if TYPE_CHECKING:
    from dpsql.faces.cli.shell.state import Shell

_TABLES: Final = frozenset({"\\d", "\\d+", "\\dt", "\\policy"})
_BARE: Final = re.compile(r"[\w.-]+")
_QUERIES: Final = frozenset({"\\explain", "\\cost"})
_FILES: Final = frozenset({"\\i", "\\include", "\\ir", "\\o", "\\out", "\\e", "\\edit"})
_WORDS: Final = {
    "\\x": ("on", "off", "auto"),
    "\\t": ("on", "off"),
    "\\fresh": ("on", "off"),
    "\\intervals": ("on", "cols", "off"),
    "\\budget": ("history",),
    "\\epsilon": ("off",),
    "\\delta": ("off",),
    "\\history": ("off", "clear"),
    "\\timing": ("off",),
}


class ShellCompleter(Completer):
    """Completions of the text before the cursor."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Likely ones first. Whatever goes wrong, typing goes on."""
        with contextlib.suppress(Exception):
            yield from self._completions(document.text_before_cursor)

    def _completions(self, text: str) -> Iterator[Completion]:
        line = text.lstrip()
        if not line.startswith("\\"):
            yield from self._sql(text)
            return
        name, space, rest = line.partition(" ")
        if not space:
            yield from _commands(name)
        elif name in _QUERIES:
            yield from self._sql(rest)
        elif name in _FILES:
            yield from self._files(rest)
        else:
            yield from self._arguments(name, rest)

    def _sql(self, text: str) -> Iterator[Completion]:
        from dpsql.faces.editor.completion import complete

        for found in complete(text, len(text), self._shell.connection.policy, self._shell.dialect):
            yield Completion(
                found.text, start_position=found.start - len(text), display=found.label,
                display_meta=found.detail or found.kind,
            )  # fmt: skip

    def _arguments(self, name: str, rest: str) -> Iterator[Completion]:
        if name in _TABLES:
            yield from _among([_as_word(t) for t in self._shell.connection.policy.tables], rest.lstrip(), '"')
            return
        *earlier, typed = rest.split(" ")
        given = [word for word in earlier if word]
        if name == "\\pset":
            if not given:
                yield from _among(list(OPTIONS), typed)
            elif given[0] in OPTIONS:
                values = OPTIONS[given[0]].values.split(" | ")
                yield from _among([v for v in values if v.islower()], typed)
        elif given:
            return
        elif name in ("\\set", "\\unset"):
            yield from _among(sorted({*self._shell.variables, "ON_ERROR_STOP"}), typed)
        elif name in ("\\df", "\\h", "\\help"):
            yield from _among(_functions(), typed)
        else:
            yield from _among(list(_WORDS.get(name, ())), typed)

    def _files(self, rest: str) -> Iterable[Completion]:
        from prompt_toolkit.completion import PathCompleter

        return PathCompleter(expanduser=True).get_completions(Document(rest.lstrip()), CompleteEvent())


def _functions() -> list[str]:
    found = [f["names"] for functions in describe_registry().values() for f in functions if not f["operator"]]
    return sorted({*(str(names[0]).upper() for names in found if isinstance(names, list)), "COUNT", "SUM", "AVG"})


def _commands(typed: str) -> Iterator[Completion]:
    """Those that begin as typed: \\h and \\H are not the same."""
    for name in sorted(COMMANDS):
        if name.startswith(typed):
            yield Completion(name, start_position=-len(typed), display_meta=COMMANDS[name].help)


def _as_word(name: str) -> str:
    """A name as one word of a meta-command: in quotes where it is more than letters, digits, `_`, `.` and `-`."""
    return name if _BARE.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _among(known: list[str], typed: str, quote: str = "") -> Iterator[Completion]:
    """Those of the known words that begin as typed, in any letter case, with the quote or without it."""
    wanted = typed.casefold().removeprefix(quote)
    for word in known:
        if word.casefold().removeprefix(quote).startswith(wanted):
            yield Completion(word, start_position=-len(typed))
