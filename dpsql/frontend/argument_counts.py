"""How many arguments there are, where the parser does not say: it drops one, or reads nothing of the call."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions.function_names import PAIRS

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_MOST = {
    **dict.fromkeys(
        ("LOG10", "LOG2", "SHA256", "DATE_TO_DATE_STR", "TIME_TO_TIME_STR", "TS_OR_DS_TO_DATE_STR", "INT", "DOUBLE",
         "STRING"), 1
    ),
    **dict.fromkeys(
        ("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE", "DATE_TRUNC", "DATETRUNC", "LTRIM", "RTRIM", "MOD",
         "DIV", "XOR", "STRFTIME"), 2
    ),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF", "LPAD", "RPAD", "LEFTPAD", "RIGHTPAD"), 3),
}  # fmt: skip
"""Functions of which sqlglot drops arguments beyond so many without a word."""
_NAMED = re.compile("|".join(_MOST), re.IGNORECASE)
"""What a text contains that may call one of them."""
_FORMS = {
    **dict.fromkeys(("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE"), ", as in  {}(x, 0.5)"),
    **dict.fromkeys(("DATE_TRUNC", "DATETRUNC"), ", as in  {}('month', x AT TIME ZONE 'Europe/Berlin')"),
}


def refuse_surplus_arguments(tokens: Sequence[Token], source: Source) -> None:
    """Raises Rejected DP106."""
    if _NAMED.search(source.text) is None:
        return
    open_: list[tuple[Token | None, int]] = []
    before: Token | None = None
    for token in tokens:
        match token.token_type:
            case TokenType.L_PAREN:
                called = before is not None and source.text[before.start : before.end + 1].upper() in _MOST
                open_.append((before if called else None, 0))
            case TokenType.L_BRACKET | TokenType.L_BRACE:
                open_.append((None, 0))
            case TokenType.R_PAREN | TokenType.R_BRACKET | TokenType.R_BRACE if open_:
                open_.pop()
            case TokenType.COMMA if open_:
                name, commas = open_[-1]
                written = "" if name is None else name.text.upper()
                if name is not None and commas + 1 >= _MOST[written]:
                    most, form = _MOST[written], _FORMS.get(written, "")
                    raise reject(
                        "DP106", f"{written} takes at most {most} argument{'s' * (most > 1)}",
                        span=Span(name.start, token.end + 1), source=source,
                        help=[f"leave the others out{form.format(written)}"],
                    )  # fmt: skip
                open_[-1] = name, commas + 1
        before = token


def wrong_pair(tokens: Sequence[Token], source: Source) -> Rejected | None:
    """The refusal of the first CORR(…) and its like without two arguments: sqlglot takes nothing else for one."""
    for i, token in enumerate(tokens[:-2]):
        name = source.text[token.start : token.end + 1].upper()
        if name.lower() not in PAIRS or tokens[i + 1].token_type is not TokenType.L_PAREN:
            continue
        span = Span(token.start, tokens[i + 2].end + 1)
        if tokens[i + 2].token_type is TokenType.DISTINCT:
            return reject(
                "DP101", f"{name}(DISTINCT …) is not supported", span=span, source=source,
                help=["leave DISTINCT out: then every row counts"],
            )  # fmt: skip
        depth, commas = 0, 0
        for later in tokens[i + 1 :]:
            depth += (later.token_type in _OPENING) - (later.token_type in _CLOSING)
            commas += depth == 1 and later.token_type is TokenType.COMMA
            if not depth:
                break
        if not depth and commas != 1:
            return reject(
                "DP106", f"{name} takes two arguments", span=span, source=source,
                help=[f"as in  {name}(y, x): y is the one that depends on x"],
            )  # fmt: skip
    return None
