"""A place in a list of tokens, for the little syntax that is read before sqlglot parses the text."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import Token, TokenType

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject


@dataclass(slots=True)
class TokenCursor:
    """The tokens of a text, and which of them is next (`at`)."""

    tokens: list[Token]
    source: Source
    at: int = 0

    def peek(self, ahead: int = 0) -> Token | None:
        """The next token, or one that many further on; None beyond either end."""
        at = self.at + ahead
        return self.tokens[at] if 0 <= at < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """A bare word in capitals; empty for strings, quoted names, numbers and signs."""
        token = self.peek(ahead)
        if token is None or not token.text:
            return ""
        written = self.source.text[token.start : token.end + 1]
        return written.upper() if written == token.text and (written[0].isalpha() or written[0] == "_") else ""

    def is_(self, kind: TokenType, ahead: int = 0) -> bool:
        """Whether the next token, or one further on, is of this kind."""
        token = self.peek(ahead)
        return token is not None and token.token_type is kind

    def span(self, first: int, last: int) -> Span:
        """From the token at one index to the one at another; the end of the text if there is none."""
        last = min(last, len(self.tokens) - 1)
        return Span(self.tokens[min(first, last)].start, self.tokens[last].end + 1)

    def take(self, kind: TokenType, what: str) -> Token:
        """The next token, which is passed. Raises Rejected DP010 if it is of another kind."""
        token = self.peek()
        if token is None or token.token_type is not kind:
            raise reject(
                "DP010", f"syntax error: expected {what}", span=self.span(self.at, self.at),
                help=["write it as in the SQL reference"],
            )  # fmt: skip
        self.at += 1
        return token

    def number(self, what: str) -> Fraction:
        """A literal number, with its sign. Raises Rejected DP115."""
        sign = -1 if self.is_(TokenType.DASH) else 1
        if self.is_(TokenType.DASH) or self.is_(TokenType.PLUS):
            self.at += 1
        text = ""
        if self.is_(TokenType.DOT):  # .5 is two tokens in some dialects
            text = "."
            self.at += 1
        if not self.is_(TokenType.NUMBER):
            raise self.not_number(what)
        token = self.peek()
        assert token is not None
        text += token.text
        try:
            mantissa, _, exponent = text.lower().partition("e")
            if len(mantissa) > 400 or len(exponent) > 4:
                raise ValueError
            value = sign * Fraction(text)
        except ValueError:
            raise self.not_number(what) from None
        self.at += 1
        return value

    def not_number(self, what: str) -> Rejected:
        """The refusal of anything else than a literal number at this place."""
        return reject(
            "DP115", f"{what} must be a literal number", span=self.span(self.at, self.at),
            help=["write the number itself, or pass it as a keyword argument of the call"],
        )  # fmt: skip
