"""What `dpsql check` can be told, each thing declared once: its key, type and default are a field of Configuration.

Made of it: the options of the command line and their reference (faces/cli/commands/checks/check_options.py), what a
configuration file may say (config.py), and what both say together (check_settings.py).
"""

# ruff: noqa: RUF009 (`option` makes a field)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any, Final, Literal, TypeAlias, get_type_hints

Kind: TypeAlias = Literal[
    "text", "path", "choice", "switch", "count", "amount", "texts", "codes", "ignored", "ignored by file", "names",
    "variables", "parameters",
]  # fmt: skip
"""How a value is read, by config.py from TOML and by check_settings.py from the command line."""
OutputFormat: TypeAlias = Literal["full", "concise", "json", "github", "sarif", "gitlab"]
"""The names of dpsql/faces/check/report/formats."""
MOST_JOBS: Final = 1024


@dataclass(frozen=True, slots=True)
class CheckOption:
    """kind, help, metavar: what is taken, what it does, what stands for a value in the help. default: where nothing is
    said. flag: the name on the command line; "": none. key: whether files may say it. adds: whether the command line
    adds to what a file lists, instead of replacing it.
    """

    kind: Kind
    default: Any
    help: str
    metavar: str | None
    flag: str
    key: bool
    adds: bool
    type: Any = None


def option(
    kind: Kind, default: Any, help: str = "", metavar: str | None = None,
    *, flag: str | None = None, key: bool = True, adds: bool = False,
) -> Any:  # fmt: skip
    """A field that is an option. flag: None: `--` and the field's name."""
    about = {"option": CheckOption(kind, default, help, metavar, "--" if flag is None else flag, key, adds)}
    return field(default_factory=dict, metadata=about) if default == {} else field(default=default, metadata=about)


@cache
def declared(group: type) -> Mapping[str, CheckOption]:
    """The options that are the fields of a dataclass, by their names, in order."""
    hints, found = get_type_hints(group), {}
    for each in fields(group):
        about: CheckOption = each.metadata["option"]
        flag = f"--{each.name.replace('_', '-')}" if about.flag == "--" else about.flag
        found[each.name] = replace(about, flag=flag, type=hints[each.name])
    return found


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is said, by a file or by the file and the command line together. None or empty: nothing is."""

    policy: str | None = option("path", None, "The policy file; else the configuration's.", "POLICY")
    draft: bool = option("switch", False, "Check against a policy that is a draft, too.", key=False)
    output_format: OutputFormat | None = option(
        "choice", None, "How to print findings. Default: full.", flag="--format"
    )
    dialect: str | None = option("text", None, "duckdb (default), postgres, bigquery, …", "NAME")
    select: Sequence[str] = option("codes", (), "Only these of the codes that can be ignored, e.g. DP3,DP412.", "CODES")
    ignore: Sequence[str] = option("ignored", (), "Not these, e.g. DP5; never DP0xx, DP1xx, DP2xx.", "CODES", adds=True)
    limits: Literal["auto", "declared", "search"] | None = option(
        "choice",
        None,
        "How queries are asked: as the policy says (default), or with limits declared, or searched.",
    )
    max_epsilon: Fraction | None = option("amount", None, "The largest ε that one query may ask for.", "E")
    max_epsilon_per_file: Fraction | None = option("amount", None, "The same for all queries of a file together.", "E")
    strict: bool = option("switch", False, "Warnings (DP5xx) fail, too.")
    baseline: str | None = option("path", None, "Leave out the findings that this file holds.", "FILE")
    include: Sequence[str] = option("texts", (), "Files of folders to check, instead of *.sql; repeatable.", "PATTERN")
    exclude: Sequence[str] = option("texts", (), "Files and folders to leave out; repeatable.", "PATTERN", adds=True)
    force_exclude: bool = option("switch", False, "Leave them out even if they are named (for pre-commit).", key=False)
    gitignore: bool = option("switch", True, "Check what .gitignore names, too.", flag="--no-gitignore")
    dbt: str | None = option("path", None, "Check the models of a compiled dbt project; PATHS select some.", "DIR")
    templater: Literal["none", "jinja"] | None = option(
        "choice", None, "jinja renders files first; needs dpsql's extra `templates`."
    )
    templates: Mapping[str, Any] = option(
        "variables", {}, "A variable of templates; repeatable.", "NAME=VALUE", flag="--template-var", adds=True
    )
    template_macros: Sequence[str] = option(
        "texts", (), "Files of macros that templates may call; repeatable.", "PATH", adds=True
    )
    parameters: Mapping[str, Any] = option(
        "parameters",
        {},
        "Check $NAME with this SQL constant or text; repeatable.",
        "NAME=VALUE",
        flag="--parameter",
        adds=True,
    )
    config: str | None = option(
        "text", None, "The configuration, instead of the nearest dpsql.toml.", "FILE", key=False
    )
    no_config: bool = option("switch", False, "Read no configuration.", key=False)
    jobs: int | None = option("count", None, "Processes. Default: as many as pay.", "N")
    cache_dir: str | None = option(
        "path", None, "Where results are kept. Default: .dpsql_cache beside the configuration.", "DIR"
    )
    cache: bool = option("switch", True, "Keep and reuse no results.", flag="--no-cache")
    per_file_ignores: Mapping[str, Sequence[str]] = option("ignored by file", {}, flag="")
    dbt_tables: Mapping[str, str] = option("names", {}, flag="")
