"""The tokens of one command, read from front to end."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.faces.server.front.commands.client_tokens import ClientToken, tokens
from dpsql.faces.server.front.commands.commands import QueryCommand
from dpsql.faces.server.front.error_fields import ProtocolFault


class Reader:
    """The tokens of a statement, read from front to end; they are made only as far as they are looked at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens(text)
        self._ahead: list[ClientToken] = []
        self.last = 0
        first = self.peek()
        self.word = "" if first is None else first.upper

    def peek(self, by: int = 0) -> ClientToken | None:
        while len(self._ahead) <= by:
            token = next(self._tokens, None)
            if token is None:
                return None
            self._ahead.append(token)
        return self._ahead[by]

    def take(self) -> ClientToken:
        token = self.peek()
        if token is None:
            raise self.wrong()
        self._ahead.pop(0)
        self.last = token.end
        return token

    def all(self) -> Iterator[ClientToken]:
        """What is left, taken."""
        while self.peek() is not None:
            yield self.take()

    def accept(self, *words: str) -> bool:
        """Whether the next words are these; they are taken then."""
        if all((t := self.peek(i)) is not None and t.upper == word for i, word in enumerate(words)):
            for _ in words:
                self.take()
            return True
        return False

    def one_of(self, *words: str) -> str:
        """The next word if it is one of these, taken; else "" ."""
        token = self.peek()
        if token is not None and token.upper in words and token.upper:
            self.take()
            return token.upper
        return ""

    def name(self) -> str:
        token = self.take()
        if token.kind not in ("word", "quoted"):
            raise self.wrong(token)
        return token.value

    def dotted(self) -> str:
        found = self.name()
        while self.accept("."):
            found += f".{self.name()}"
        return found

    def end(self) -> None:
        if (token := self.peek()) is not None:
            raise self.wrong(token)

    def rest(self) -> QueryCommand:
        """What is left, as a query."""
        first = self.peek()
        if first is None:
            raise self.wrong()
        return QueryCommand(self.text[first.start :], first.start)

    def wrong(self, token: ClientToken | None = None) -> ProtocolFault:
        if token is None:
            return ProtocolFault("42601", "syntax error at end of input", at=len(self.text.rstrip()))
        return ProtocolFault(
            "42601", f'syntax error at or near "{self.text[token.start : token.end][:100]}"', at=token.start
        )
