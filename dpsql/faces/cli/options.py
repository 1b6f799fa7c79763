"""The words of the command line that several commands share: arguments, options and the values they take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import typer

from dpsql.core.numbers.confidence import LEVEL

USUAL = str(float(LEVEL))
"""`--confidence` where none is given."""


class Format(StrEnum):
    """`--format` of `dpsql query`."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    BOX = "box"
    HTML = "html"
    VERTICAL = "vertical"
    UNALIGNED = "unaligned"


class Intervals(StrEnum):
    """How the intervals of an answer are shown: `value ± half-width`, columns of both ends, or not at all."""

    ON = "on"
    COLS = "cols"
    OFF = "off"


class System(StrEnum):
    """Whose set-up `policy import` reads."""

    SMARTNOISE = "smartnoise"
    OPENDP = "opendp"
    TUMULT = "tumult"
    BIGQUERY = "bigquery"
    SNOWFLAKE = "snowflake"


class ExplainFormat(StrEnum):
    """`--format` of `dpsql explain`."""

    TEXT = "text"
    JSON = "json"


class ReportFormat(StrEnum):
    """`--format` of `dpsql budget`."""

    TABLE = "table"
    JSON = "json"


class MadeUpChoice(StrEnum):
    """`--made-up` of `dpsql serve`."""

    NONE = "none"
    BESIDE = "beside"
    ONLY = "only"


class Role(StrEnum):
    """`--role` of `dpsql user add`."""

    ANALYST = "analyst"
    CUSTODIAN = "custodian"


class UserKind(StrEnum):
    """`--kind` of `dpsql user add`."""

    PERSON = "person"
    BI = "bi"


def _of_columns(name: str, form: str, help: str) -> Any:
    """An option that is given once for each column that it is about."""
    return typer.Option(name, metavar=form, help=f"{help}; may be repeated.")


Policy: TypeAlias = Annotated[
    str, typer.Argument(metavar="POLICY", help="The policy file.", envvar="DPSQL_POLICY", show_envvar=False)
]
Sql: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="SQL", help="One SELECT; `-` reads it from standard input.")
]
File: TypeAlias = Annotated[
    str | None, typer.Option("--file", "-f", metavar="FILE", help="Read the SELECT from a file.")
]
Epsilon: TypeAlias = Annotated[
    str | None, typer.Option("--epsilon", metavar="E", help="What to spend, e.g. 0.5; else the policy's.")
]
Rho: TypeAlias = Annotated[
    str | None, typer.Option("--rho", metavar="R", help="How much to spend in ρ, under zCDP, instead of ε.")
]
MaxError: TypeAlias = Annotated[
    list[str] | None,
    _of_columns("--max-error", "COL=E", "Spend the least that keeps this column's ± within E"),
]
Confidence: TypeAlias = Annotated[
    str,
    typer.Option(
        "--confidence", metavar="P", help="How often the value lies within the ± of --max-error and of the answer."
    ),
]
Weight: TypeAlias = Annotated[
    list[str] | None,
    _of_columns("--weight", "COL=W", "This column's part of ε in proportion to the others', which have 1"),
]
Delta: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--delta", metavar="D", help="For private group keys and Gaussian noise, e.g. 1e-9; spent only if it is used."
    ),
]
Limits: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--limits",
        metavar="HOW",
        help="search: a quarter of the price finds limits and bounds, privately; declared; auto: as the policy says.",
    ),
]


@dataclass(frozen=True, slots=True)
class SpendingOptions:
    """How much a query may spend, and on what: the options as they are given."""

    epsilon: Epsilon = None
    rho: Rho = None
    max_error: MaxError = None
    confidence: Confidence = USUAL
    weight: Weight = None
    delta: Delta = None
    limits: Limits = None


Analyst: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--analyst",
        metavar="NAME",
        help="Whose budget is spent; else the shared `*`.",
        envvar="DPSQL_ANALYST",
        show_envvar=False,
    ),
]
Ledger: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="The ledger, instead of the policy's: a file, postgresql://…, or :memory:.",
        envvar="DPSQL_LEDGER",
        show_envvar=False,
    ),
]
Draft: TypeAlias = Annotated[bool, typer.Option("--draft", help="Ask made-up rows, for nothing, also of drafts.")]
Fresh: TypeAlias = Annotated[bool, typer.Option("--fresh", help="Pay for new noise, in place of a stored answer.")]
AllowDearer: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--allow-dearer/--no-allow-dearer",
        help="Take stored answers of others also where they cost this account more than what is asked. "
        "Default: the policy's.",
        show_default=False,
    ),
]
Coverage: TypeAlias = Annotated[
    bool,
    typer.Option("--coverage", help="Tell, for a tenth of the price, how many units are above the limits."),
]
ConsistentTotals: TypeAlias = Annotated[
    bool,
    typer.Option("--consistent-totals", help="Make totals of ROLLUP and the like the sums of their parts."),
]
Dialect: TypeAlias = Annotated[
    str, typer.Option("--dialect", metavar="NAME", help="The SQL dialect of the text: duckdb, postgres, bigquery, …")
]
Threads: TypeAlias = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Processor threads of the database. Default: all.")
]
MemoryLimit: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory of the database, e.g. 8GB; the rest goes to a private temporary folder. Default: 80 %.",
    ),
]
