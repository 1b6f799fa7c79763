"""Every command with its options, in one place. What a command does is in the module of its name, loaded when used.

Commands return an exit code (exits.py); refusals leave them as exceptions, which `main` turns into one.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dpsql.faces.cli import options as o
from dpsql.faces.cli.commands.checks import check_options
from dpsql.faces.cli.commands.checks import diff as diff_command
from dpsql.faces.cli.grouped import grouped
from dpsql.faces.cli.one_screen import OneScreen
from dpsql.faces.cli.shell.command import InOrder, shell

EXIT_CODES = (
    "Exit codes: 0 ok, 1 usage or engine failure, 2 cannot open data, policy or ledger, 3 the statement is not one "
    "query, 4 refused by the privacy analysis, 5 budget exhausted, 130 interrupted."
)

app = typer.Typer(
    name="dpsql",
    help="SQL over personal data, answered with differential privacy.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
policy_app = typer.Typer(
    help="Write, check and read policies.", rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=False
)
app.add_typer(policy_app, name="policy")
user_app = typer.Typer(
    help="Who may log in at `dpsql serve`.", rich_markup_mode=None, pretty_exceptions_enable=False,
    no_args_is_help=False,
)  # fmt: skip
app.add_typer(user_app, name="user")


@app.callback(invoke_without_command=True)
def dpsql(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> int:
    """SQL over personal data, answered with differential privacy."""
    if version:
        from dpsql import __version__

        print(f"dpsql {__version__}")
        raise typer.Exit(0)
    return _help_if_alone(context)


@policy_app.callback(invoke_without_command=True)
def policy(context: typer.Context) -> int:
    """Write, check and read policies."""
    return _help_if_alone(context)


@user_app.callback(invoke_without_command=True)
def user(context: typer.Context) -> int:
    """Who may log in at `dpsql serve`."""
    return _help_if_alone(context)


def _help_if_alone(context: typer.Context) -> int:
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(1)
    return 0


@app.command()
def demo(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="An empty folder, made if missing.")] = "dpsql-demo",
) -> int:
    """Make a small clinic and walk through five queries."""
    from dpsql.faces.cli.commands import demo as command

    return command.run(directory)


app.command(epilog=EXIT_CODES, cls=InOrder)(shell)


@app.command(epilog=EXIT_CODES, cls=OneScreen)
@grouped
def query(
    policy: o.Policy,
    sql: o.Sql = None,
    file: o.File = None,
    *,
    spending: o.SpendingOptions,
    analyst: o.Analyst = None,
    ledger: o.Ledger = None,
    allow_dearer: o.AllowDearer = None,
    coverage: o.Coverage = False,
    consistent_totals: o.ConsistentTotals = False,
    draft: o.Draft = False,
    fresh: o.Fresh = False,
    format: Annotated[o.Format, typer.Option("--format", help="How to print the answer.")] = o.Format.TABLE,
    dialect: o.Dialect = "duckdb",
    threads: o.Threads = None,
    memory_limit: o.MemoryLimit = None,
    progress: Annotated[
        bool,
        typer.Option(
            "--progress", help="Custodian: show on a terminal how far a long query is; this depends on private rows."
        ),
    ] = False,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch", metavar="FILE", help="Counts and sums over one relation, measured together at one price."
        ),
    ] = None,
    skip_refused: Annotated[
        bool, typer.Option("--skip-refused", help="Leave out the queries of the batch that are refused.")
    ] = False,
) -> int:
    """Answer one query with noise, and charge its price.

    What was released before, as accurately or better, is given again and not charged; what others paid for is charged
    to the analyst, where that is no more than what is asked. A table shows `value ± half-width`. csv, json and jsonl
    print nothing but data on standard output; csv leaves texts as they are, also those that a spreadsheet takes for a
    formula (=, +, -, @): import such columns as text.
    """
    from dpsql.faces.cli.commands.queries import query as command
    from dpsql.faces.cli.inputs import policy_and_query, read_asked

    asked = read_asked(spending, allow_dearer, coverage, consistent_totals)
    policy, sql = policy_and_query(policy, sql, file or batch)
    return command.run(
        policy, sql, file, batch, skip_refused, asked, analyst, ledger, fresh, format, dialect, threads, memory_limit,
        progress, draft,
    )  # fmt: skip


@app.command(epilog=EXIT_CODES, cls=OneScreen)
@grouped
def explain(
    policy: o.Policy,
    sql: o.Sql = None,
    file: o.File = None,
    *,
    spending: o.SpendingOptions,
    analyst: o.Analyst = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            metavar="FILE",
            help="Taken as in `query`; nothing is charged.",
            envvar="DPSQL_LEDGER",
            show_envvar=False,
        ),
    ] = None,
    allow_dearer: o.AllowDearer = None,
    coverage: o.Coverage = False,
    draft: o.Draft = False,
    consistent_totals: o.ConsistentTotals = False,
    format: Annotated[o.ExplainFormat, typer.Option("--format", help="Text, or JSON.")] = (o.ExplainFormat.TEXT),
    engine_sql: Annotated[bool, typer.Option("--engine-sql", help="Show the SQL that the engine would run, too.")] = (
        False
    ),
    dialect: o.Dialect = "duckdb",
) -> int:
    """Show sensitivities, noise and price of a query, for free."""
    from dpsql.faces.cli.commands.queries import explain as command
    from dpsql.faces.cli.inputs import policy_and_query, read_asked

    asked = read_asked(spending, allow_dearer, coverage, consistent_totals)
    policy, sql = policy_and_query(policy, sql, file)
    return command.run(policy, sql, file, asked, analyst, ledger, format, engine_sql, dialect, draft)


app.command(epilog=check_options.EXIT_CODES, cls=OneScreen)(check_options.check)
app.command(epilog=diff_command.EXIT_CODES, cls=OneScreen)(diff_command.diff)


@app.command(epilog=EXIT_CODES, cls=OneScreen)
def budget(
    policy: o.Policy,
    analyst: Annotated[
        str | None, typer.Option("--analyst", metavar="NAME", help="Only this analyst's account, and the total.")
    ] = None,
    ledger: o.Ledger = None,
    format: Annotated[o.ReportFormat, typer.Option("--format", help="A table, or JSON.")] = o.ReportFormat.TABLE,
    history: Annotated[bool, typer.Option("--history", help="List every query that was charged, too.")] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw what is spent and left, over time and by period: FILE.html.",
        ),
    ] = None,
    accept_head: Annotated[
        bool,
        typer.Option(
            "--accept-head",
            help="Custodian: accept the ledger as it stands, forgetting what was spent since it was copied.",
        ),
    ] = False,
    add: Annotated[
        str | None,
        typer.Option(
            "--add", metavar="AMOUNT", help="Custodian: add ε (zCDP: ρ) to a budget that is fixed; -1 takes away."
        ),
    ] = None,
    add_delta: Annotated[str | None, typer.Option("--add-delta", metavar="AMOUNT", help="Custodian: add δ.")] = None,
    of: Annotated[str, typer.Option("--of", metavar="NAME", help="To the total, or to this analyst's.")] = "total",
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="NAME", help="Of this privacy unit; else of all.")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the ledger.")] = None,
    failures: Annotated[
        bool, typer.Option("--failures", help="List what failed in the engine since a custodian looked last, too.")
    ] = False,
    clear: Annotated[
        str | None,
        typer.Option(
            "--clear", metavar="WHY", help="Custodian: what has failed was looked at, and counts no more (--failures)."
        ),
    ] = None,
) -> int:
    """Show what has been spent and what is left."""
    from dpsql.faces.cli.commands.budgets import budget as command
    from dpsql.faces.cli.commands.budgets import budget_additions

    addition = budget_additions.read(add, add_delta, of, unit, reason)
    return command.run(policy, analyst, ledger, format, history, plot, accept_head, failures, clear, addition)


@app.command(
    cls=OneScreen,
    epilog="Exit codes: 0 not refuted, 1 refuted, 2 could not audit (policy, options, engine), 3 the statement is not "
    "one query, 4 refused by the privacy analysis, 130 interrupted.",
)
def audit(
    policy: o.Policy,
    sql: o.Sql = None,
    file: o.File = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="E", help="The ε that the query is audited at. Default: 1.")
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(
            "--delta", metavar="D", help="The δ. Default: the policy's; for private group keys 0.05, which can be seen."
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", help="Releases of each database to choose by, and again to test.")
    ] = 10_000,
    format: Annotated[o.ExplainFormat, typer.Option("--format", help="Text, or JSON.")] = (o.ExplainFormat.TEXT),
    dialect: o.Dialect = "duckdb",
) -> int:
    """Try to refute what a query claims, on made-up neighbouring databases.

    Worst-case databases are made from the policy, the real pipeline runs on both, and certified lower bounds of ε or δ
    are printed beside what the plan claims. No private data is read and nothing is charged.

    `dpsql audit kit DIR` writes a folder with planted faults and harnesses, in which `python find.py` looks for them.
    """
    from dpsql.faces.cli.commands.queries import audit as command
    from dpsql.faces.cli.inputs import policy_and_query

    if policy == "kit" and sql is not None:
        return command.kit(sql)

    policy, sql = policy_and_query(policy, sql, file)
    return command.run(policy, sql, file, epsilon, delta, runs, format, dialect)


@app.command(cls=OneScreen)
def serve(
    policies: Annotated[
        list[str], typer.Argument(metavar="POLICY...", help="The policy files, each a database of its name.")
    ],
    users: Annotated[
        str | None,
        typer.Option("--users", metavar="FILE", help="Who may log in. Default: users.yaml beside the first policy."),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; other machines need TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="0 takes a free one.")] = 5432,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate and its chain, as PEM.")
    ] = None,
    tls_key: Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="Its key, as PEM.")] = None,
    tls_client_ca: Annotated[
        str | None,
        typer.Option("--tls-client-ca", metavar="FILE", help="Whose certificates clients may show, as PEM, with CRLs."),
    ] = None,
    audit_log: Annotated[
        str | None,
        typer.Option(
            "--audit-log", metavar="FILE", help="Note who asked what, a JSON object a line; - is standard output."
        ),
    ] = None,
    workers: Annotated[
        list[str] | None,
        typer.Option(
            "--workers",
            metavar="SOCKET",
            help="Where another user's workers are, one for each policy in their order; else they are started.",
        ),
    ] = None,
    health: Annotated[
        str | None,
        typer.Option(
            "--health",
            metavar="ADDRESS",
            help="Where /healthz and /metrics are told, without a login: PORT is this machine's alone, or HOST:PORT.",
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="ADDRESS:PORT", help="Where analysts find the console and the JSON API."),
    ] = None,
    custodian_http: Annotated[
        str | None,
        typer.Option("--custodian-http", metavar="ADDRESS:PORT", help="Where custodians find theirs."),
    ] = None,
    made_up: Annotated[
        o.MadeUpChoice,
        typer.Option(
            "--made-up",
            help="Databases NAME_made_up, whose rows are made up from a policy alone and whose answers are free: "
            "beside the true ones; or only those, without data and ledger.",
        ),
    ] = o.MadeUpChoice.NONE,
    tls_only: Annotated[
        bool, typer.Option("--require-tls", help="Let nobody in without TLS, from this machine neither.")
    ] = False,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="NETWORK",
            help="A proxy's address or network: connections from there begin with the PROXY protocol (1 or 2), which "
            "says where their client comes from; requests to the consoles say it in X-Forwarded-For.",
        ),
    ] = None,
) -> int:
    """Custodian: answer analysts who connect as to PostgreSQL, until this is stopped.

    They use psql, a driver or a dashboard; the data stay here. Each policy is a database. Who may log in is in the file
    of users (`dpsql user add`), how many workers a database has and when its answers leave is below `serve:` in its
    policy. After SIGTERM no connection is taken, what waits is refused, and what runs comes to its end; on SIGHUP users
    and certificate are read anew. The consoles need dpsql's extra `server`.
    """
    from dpsql.faces.cli.commands.servers import serve as command

    return command.run(
        policies, users, host, port, tls_cert, tls_key, tls_client_ca, audit_log, workers or (), health, http,
        custodian_http, made_up.value, tls_only, proxy or (),
    )  # fmt: skip


@app.command()
def rule(code: Annotated[str, typer.Argument(metavar="CODE", help="A diagnostic code, e.g. DP201.")]) -> int:
    """Print what a code means and how to repair it."""
    from dpsql.faces.cli.commands import rule as command

    return command.run(code)


@app.command()
def lsp(
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="POLICY", help="The policy file. Default: the configuration's.")
    ] = None,
    dialect: Annotated[str | None, typer.Option("--dialect", metavar="NAME", help="The SQL dialect.")] = None,
) -> int:
    """Serve an editor: diagnostics while typing, hover, completion, quick fixes. Needs dpsql's extra `lsp`."""
    from dpsql.faces.cli.commands import lsp as command

    return command.run(policy, dialect)


@policy_app.command("check")
def policy_check(
    file: o.Policy,
    data: Annotated[bool, typer.Option("--data", help="Open the data, too, and compare tables and types.")] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="VERSION", help="Say what has changed since, e.g. 0.1. Else the ledger tells."),
    ] = None,
) -> int:
    """Check a policy file; every mistake is reported at once. After an upgrade it says what changes, and what to do."""
    from dpsql.faces.cli.commands.policies import policy as command

    return command.check(file, data, since)


@policy_app.command("schema")
def policy_schema(
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")] = None,
) -> int:
    """Print the JSON Schema of policies, for editors."""
    from dpsql.faces.cli.commands.policies import policy as command

    return command.schema(output)


@policy_app.command("init")
def policy_init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="A DuckDB file and/or Parquet, CSV or JSON files, folders (patterns in quotes); or postgresql://…, "
            "sc://…",
        ),
    ],
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a new file.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The policy's name. Default: the data's.")
    ] = None,
) -> int:
    """Draft a policy from a schema and, where a file has none, its first rows; no value stands in it."""
    from dpsql.faces.cli.commands.policies import policy_init as command

    return command.run(data, output, name)


@policy_app.command("import")
def policy_import(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="SmartNoise's metadata, a script of OpenDP or Tumult, DDL of Snowflake or BigQuery."
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA...", help="Where the tables are, as for `init`: their types are taken from there."
        ),
    ] = None,
    system: Annotated[
        o.System | None, typer.Option("--from", help="Whose set-up it is. Default: what the file looks like.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a new file.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The policy's name. Default: what the set-up says.")
    ] = None,
) -> int:
    """Write a policy from another system's set-up, with DECIDE where a person has to say something.

    Scripts are read, never run. What means something else here stands at the head of what is written.
    """
    from dpsql.faces.cli.commands.policies import policy_import as command

    return command.run(file, data or [], system, output, name)


@policy_app.command("audit")
def policy_audit(
    file: o.Policy,
    format: Annotated[o.ExplainFormat, typer.Option("--format", help="Text, or JSON.")] = o.ExplainFormat.TEXT,
) -> int:
    """List the promises that nothing enforces."""
    from dpsql.faces.cli.commands.policies import policy as command

    return command.audit(file, format)


@policy_app.command(
    "verify",
    epilog="Exit codes: 0 the data keeps every promise, 1 it breaks at least one, 2 could not verify "
    "(policy, data, options).",
)
def policy_verify(
    file: o.Policy,
    format: Annotated[o.ExplainFormat, typer.Option("--format", help="Text, or JSON.")] = o.ExplainFormat.TEXT,
    threads: o.Threads = None,
    memory_limit: o.MemoryLimit = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on a terminal.")] = False,
) -> int:
    """Test every promise against the data. For the custodian only: it shows exact numbers about private data.

    What it prints is not differentially private, and no budget is charged: do not pass it on.
    """
    from dpsql.faces.cli.commands.policies import policy_verify as command

    return command.run(file, format, threads, memory_limit, not quiet)


@app.command(epilog=EXIT_CODES)
def prepare(
    file: o.Policy,
    threads: o.Threads = None,
    memory_limit: o.MemoryLimit = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on a terminal.")] = False,
) -> int:
    """Custodian: copy the tables that say `prepared`, with at most max_rows_per_unit rows of each unit.

    Queries read the copy, and need not bound contributions any more. Prepare again when the data or the policy changed.
    It is made beside the policy, as private as the data; what is printed is exact. No budget is charged.
    """
    from dpsql.faces.cli.commands import prepare as command

    return command.run(file, threads, memory_limit, not quiet)


@app.command(epilog=EXIT_CODES, cls=OneScreen)
def close(
    file: o.Policy,
    through: Annotated[
        str | None, typer.Option("--through", metavar="DATE", help="The last day of the last period that is complete.")
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Which table. Default: the only one that grows.")
    ] = None,
    reopen: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--reopen", metavar="FROM TO", help="Rows of these closed days were corrected: stored answers are void."
        ),
    ] = None,
    ledger: o.Ledger = None,
) -> int:
    """Custodian: say that the periods of a growing table are complete up to a day. Queries read closed periods only.

    It is an entry in the ledger that charges nobody. Late rows of a closed period are read from then on, and cost no
    more privacy; answers that are stored do not know them. Data are opened only where counters are to be counted.
    """
    from dpsql.faces.cli.commands import close as command

    return command.run(file, command.Closing(table, through, reopen), ledger)


@policy_app.command("report", epilog=EXIT_CODES, cls=OneScreen)
def policy_report(
    file: o.Policy,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a new file, e.g. report.html.")
    ] = None,
    ledger: o.Ledger = None,
    data: Annotated[
        bool,
        typer.Option(
            "--data", help="Custodian: read the data, too, and print exactly what the limits cut. That copy is private."
        ),
    ] = False,
    registry: Annotated[
        bool, typer.Option("--registry", help="JSON with the fields of OpenDP's registry of deployments, in its place.")
    ] = False,
    threads: o.Threads = None,
    memory_limit: o.MemoryLimit = None,
) -> int:
    """Write one page about the policy for lawyers and boards: whom it protects, how far, what is spent and promised.

    It is HTML that loads nothing and runs nothing, to be read, printed and signed. Without --data no data are opened.
    """
    from dpsql.faces.cli.commands.policies import policy_report as command

    if registry:
        return command.of_registry(file, output)
    return command.run(file, output, ledger, data, threads, memory_limit)


@policy_app.command(
    "diff",
    epilog="Exit codes: 0 nothing is lost, 1 something is, or it cannot be told, 2 could not open "
    "(policies, data, ledger).",
)
def policy_diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The policy that is in force.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The policy that is to take its place.")],
    ledger: o.Ledger = None,
    format: Annotated[o.ExplainFormat, typer.Option("--format", help="Text, or JSON.")] = o.ExplainFormat.TEXT,
) -> int:
    """Say which stored answers and summaries a change of the policy would lose, and what they would cost again.

    Each question of the ledger's history is planned by both policies over their data. Nothing is asked of private rows,
    and nothing is spent.
    """
    from dpsql.faces.cli.commands.policies import policy_diff as command

    return command.run(old, new, ledger, format)


@policy_app.command("suggest", epilog=EXIT_CODES, cls=OneScreen)
def policy_suggest(
    file: o.Policy,
    tables: Annotated[list[str] | None, typer.Argument(metavar="TABLE...", help="These tables. Default: all.")] = None,
    epsilon: Annotated[
        str, typer.Option("--epsilon", metavar="E", help="What all searches cost together, of each privacy unit.")
    ] = "0.5",
    analyst: Annotated[
        str, typer.Option("--analyst", metavar="NAME", help="The account that is charged, as any other.")
    ] = "custodian",
    ledger: o.Ledger = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Search what the policy declares, too; its limits are the most that is found.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be searched and its price; nothing is charged.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on a terminal.")] = False,
    threads: o.Threads = None,
    memory_limit: o.MemoryLimit = None,
) -> int:
    """Find the limits and bounds that the policy does not declare, and print them as YAML.

    They are found by searches, whose noise is paid for: unlike what the data shows, they may be published. What was
    found is kept, and whoever holds it is told again for nothing.
    """
    from dpsql.faces.cli.commands.policies import policy_suggest as command

    return command.run(file, tables or (), epsilon, analyst, ledger, everything, dry_run, quiet, threads, memory_limit)


@policy_app.command("show")
def policy_show(
    file: o.Policy,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="Only this table.")] = None,
    format: Annotated[o.ExplainFormat, typer.Option("--format", help="Text, or JSON.")] = o.ExplainFormat.TEXT,
) -> int:
    """Show the policy in force, with every default filled in."""
    from dpsql.faces.cli.commands.policies import policy as command

    return command.show(file, table, format)


@user_app.command("add")
def user_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the user logs in as.")],
    account: Annotated[
        str | None, typer.Option("--account", metavar="NAME", help="Whose budget is charged. Default: the user's name.")
    ] = None,
    role: Annotated[o.Role, typer.Option("--role", help="What the user is.")] = o.Role.ANALYST,
    kind: Annotated[o.UserKind, typer.Option("--kind", help="A person, or a tool that says nothing of ε.")] = (
        o.UserKind.PERSON
    ),
    databases: Annotated[
        list[str] | None,
        typer.Option("--database", metavar="NAME", help="One that the user may ask, of a server with several."),
    ] = None,
) -> int:
    """Custodian: print the lines of a new user, to be put below `users:` in the file of users.

    An empty file, as that of `>> users.yaml` the first time, begins with `users:`.

    The password is asked for on a terminal, and else read from standard input. What is printed holds a secret as
    PostgreSQL keeps it, and no password.
    """
    from dpsql.faces.cli.commands.servers import user as command

    return command.add(name, account, role, kind, databases or ())


@user_app.command("check")
def user_check(
    file: Annotated[str, typer.Argument(metavar="USERS", help="The file of users.")],
) -> int:
    """Custodian: check a file of users; every mistake is reported at once."""
    from dpsql.faces.cli.commands.servers import user as command

    return command.check(file)
