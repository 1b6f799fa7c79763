"""`--help` of a command is one screen: what most people need, where all of it is longer. `--help-all` has the rest."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperCommand

SCREEN: Final = 24
"""Lines of a terminal as it opens, of 80 columns."""
_ALL: Final = "dpsql.help_all"
_REST: Final = "--help-all"
_SELDOM: Final = frozenset(
    {
        # of queries
        "--rho", "--confidence", "--weight", "--delta", "--allow-dearer", "--coverage", "--consistent-totals",
        "--threads", "--memory-limit", "--progress", "--batch", "--skip-refused", "--ledger", "--engine-sql",
        # of the shell
        "--variable", "--pset", "--csv", "--json", "--no-align", "--tuples-only", "--expanded", "--limits",
        "--quiet", "--yes", "--no-history", "--no-config",
        # of `check`
        "--select", "--ignore", "--max-epsilon-per-file", "--baseline", "--write-baseline", "--include", "--exclude",
        "--force-exclude", "--no-gitignore", "--dbt", "--templater", "--template-var", "--template-macros",
        "--parameter", "--config", "--jobs", "--cache-dir", "--no-cache", "--exit-zero", "--allow-empty",
        "--unsafe-fixes", "--statistics", "--stdin-filename",
        # of `budget` and `serve`
        "--accept-head", "--add-delta", "--of", "--unit", "--reason", "--failures", "--clear", "--tls-client-ca",
        "--workers", "--health", "--made-up", "--require-tls", "--proxy",
    }
)  # fmt: skip


class OneScreen(TyperCommand):
    """A command whose `--help` leaves out what is seldom asked for, and its exit codes, if it would be too long."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual; `--help-all` is `--help` of all."""
        if _REST in args:
            ctx.meta[_ALL] = True
        return super().parse_args(ctx, ["--help" if each == _REST else each for each in args])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """All of it, where that is asked for or fits."""
        if not ctx.meta.get(_ALL):
            before, ctx.meta[_ALL] = len(formatter.buffer), True
            super().format_help(ctx, formatter)
            ctx.meta[_ALL] = "".join(formatter.buffer[before:]).count("\n") <= SCREEN
            del formatter.buffer[before:]
        super().format_help(ctx, formatter)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Its first paragraph, or all."""
        whole = self.help
        try:
            self.help = whole if ctx.meta[_ALL] else (whole or "").partition("\n\n")[0]
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, and options."""
        shown = [each for each in self.get_params(ctx) if ctx.meta[_ALL] or _SELDOM.isdisjoint(each.opts)]
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            rows = [each.get_help_record(ctx) for each in shown if each.param_type_name == kind]
            if kind == "option" and not ctx.meta[_ALL]:
                rows.append((_REST, "Show all options, and the exit codes."))
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The exit codes, where all is shown."""
        if ctx.meta[_ALL]:
            super().format_epilog(ctx, formatter)
