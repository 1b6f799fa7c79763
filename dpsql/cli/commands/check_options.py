"""The options of `dpsql check`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

EXIT_CODES = "Exit codes: 0 clean, 1 findings, 2 could not check (policy, files, options)."


class CheckFormat(StrEnum):
    """`--output-format`: the names of dpsql/checking/formats."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"
    JUNIT = "junit"
    GITLAB = "gitlab"


class Templater(StrEnum):
    """`--templater`: the names in dpsql/checking/documents/templates.py."""

    NONE = "none"
    JINJA = "jinja"


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATHS",
            help="Files, folders (their *.sql), quoted patterns, or `-`. Default: the current folder.",
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="POLICY", help="The policy file. Default: the configuration's.")
    ] = None,
    output_format: Annotated[
        CheckFormat | None, typer.Option("--output-format", help="How to print findings. Default: full.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option("--dialect", metavar="NAME", help="The SQL dialect: duckdb (default), postgres, bigquery, …"),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="CODES", help="Only these of the codes that can be ignored, e.g. DP3,DP412."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="CODES", help="Not these, e.g. DP5; never DP0xx, DP1xx, DP2xx."),
    ] = None,
    max_epsilon: Annotated[
        str | None, typer.Option("--max-epsilon", metavar="E", help="The largest ε that one query may ask for.")
    ] = None,
    max_epsilon_per_file: Annotated[
        str | None,
        typer.Option("--max-epsilon-per-file", metavar="E", help="The same for all queries of a file together."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings (DP5xx) fail, too.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Findings do not fail: 0 instead of 1.")] = False,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Finding no file is no failure.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair in the files what can be without a change of meaning.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print what --fix would change, and change nothing; 1 if there is anything.")
    ] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: guess what was meant, too.")
    ] = False,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Print how often each code was found, instead of the findings.")
    ] = False,
    budget_report: Annotated[
        bool, typer.Option("--budget-report", help="Print what every statement would cost, instead of the findings.")
    ] = False,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="FILE", help="Leave out the findings that this file holds.")
    ] = None,
    write_baseline: Annotated[
        str | None, typer.Option("--write-baseline", metavar="FILE", help="Write the findings to a baseline; 0.")
    ] = None,
    stdin_filename: Annotated[
        str | None,
        typer.Option("--stdin-filename", metavar="FILE", help="What the text on standard input is to be called."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", metavar="PATTERN", help="Files of folders to check, instead of *.sql; repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PATTERN", help="Files and folders to leave out; repeatable."),
    ] = None,
    force_exclude: Annotated[
        bool, typer.Option("--force-exclude", help="Leave them out even if they are named (for pre-commit).")
    ] = False,
    no_gitignore: Annotated[bool, typer.Option("--no-gitignore", help="Check what .gitignore names, too.")] = False,
    dbt: Annotated[
        str | None,
        typer.Option("--dbt", metavar="DIR", help="Check the models of a compiled dbt project; PATHS select some."),
    ] = None,
    templater: Annotated[
        Templater | None,
        typer.Option("--templater", help="jinja renders files first; needs dpsql's extra `templates`."),
    ] = None,
    template_var: Annotated[
        list[str] | None,
        typer.Option("--template-var", metavar="NAME=VALUE", help="A variable of templates; repeatable."),
    ] = None,
    template_macros: Annotated[
        list[str] | None,
        typer.Option("--template-macros", metavar="PATH", help="Files of macros that templates may call; repeatable."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter", metavar="NAME=VALUE", help="Check $NAME with this SQL constant or text; repeatable."
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The configuration, instead of the nearest dpsql.toml."),
    ] = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Read no configuration.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, max=1024, help="Processes. Default: as many as pay.")
    ] = None,
    cache_dir: Annotated[
        str | None,
        typer.Option(
            "--cache-dir", metavar="DIR", help="Where results are kept. Default: .dpsql_cache beside the configuration."
        ),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep and reuse no results.")] = False,
) -> int:
    """Check queries in files against a policy; no data needed.

    Settings come from the nearest `dpsql.toml`, or `[tool.dpsql]` of `pyproject.toml`; options are stronger.
    """
    from dpsql.checking.examine.settings import Asked
    from dpsql.cli.commands import check as command

    asked = Asked(
        policy,
        dialect,
        config,
        no_config,
        include or (),
        exclude or (),
        not no_gitignore,
        force_exclude,
        select or (),
        ignore or (),
        max_epsilon,
        max_epsilon_per_file,
        baseline,
        None if output_format is None else output_format.value,
        strict,
        not no_cache,
        cache_dir,
        jobs,
        dbt,
        None if templater is None else templater.value,
        template_var or (),
        template_macros or (),
        parameter or (),
    )
    wish = command.Wish(
        stdin_filename,
        write_baseline,
        statistics,
        budget_report,
        exit_zero,
        allow_empty,
        fix,
        diff,
        unsafe_fixes,
    )
    return command.run(paths or (["-"] if stdin_filename else ["."]), asked, wish)
