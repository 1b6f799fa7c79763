"""How documents are made where files are not SQL yet: from a compiled dbt project, or by rendering templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dpsql.diagnostics.errors import reject


@dataclass(frozen=True, slots=True)
class DocumentMaking:
    """dbt: the folder of a dbt project, None: none. tables: names in its warehouse → tables of the policy. dialect: as
    given; None: the warehouse's. templater: `none` or `jinja`. variables, macros: what templates may use.
    """

    dbt: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    dialect: str | None = None
    templater: str = "none"
    variables: Mapping[str, Any] = field(default_factory=dict)
    macros: tuple[str, ...] = ()


def given_variables(given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE of the command line. Raises Rejected DP903."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise reject(
                "DP903", f"--template-var takes NAME=VALUE, not {text!r}", help=["e.g.  --template-var schema=main"]
            )
        found[name.strip()] = value
    return found


def plain(value: Any) -> Any:
    """Numbers of a TOML file as a template would print them."""
    match value:
        case Decimal():
            return int(value) if value.adjusted() < 400 and value == value.to_integral_value() else float(value)
        case list():
            return [plain(each) for each in value]
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case _:
            return value
