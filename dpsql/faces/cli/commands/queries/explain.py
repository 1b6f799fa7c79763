"""`dpsql explain`: the plan of a query, as text or JSON, with what it would cost now. Spends nothing."""

from __future__ import annotations

from dpsql.api.connection import Connection, connect
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Error, reject
from dpsql.faces.cli.inputs import one_query, pointing_into
from dpsql.faces.cli.json_text import document
from dpsql.faces.cli.options import ExplainFormat
from dpsql.frontend.text.batch_statement import batch_statement
from dpsql.frontend.text.counter_statements import counter_statement
from dpsql.frontend.text.summary_statements import summary_statement
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import as_json, dumps
from dpsql.planner.plan import Plan
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.privacy_settings import Asked, settled


def run(
    policy: str,
    sql: str | None,
    file: str | None,
    asked: Asked,
    analyst: str | None,
    ledger: str | None,
    format: ExplainFormat,
    engine_sql: bool,
    dialect: str,
    draft: bool,
) -> int:
    """Raises dpsql.Error."""
    source = one_query(sql, file)
    with connect(policy, analyst=analyst, ledger=ledger, draft=draft) as connection:
        try:
            if (text := _other(connection, source, asked)) is not None:
                if format is ExplainFormat.JSON:
                    raise reject("DP903", "only a query is explained as JSON", help=["--format text"])
                print(text)
                return 0
            plan = connection.previewed(WrittenQuery(source.text, dialect=dialect), asked)
            charge = connection.charge_to_show(plan)
        except Error as error:
            raise pointing_into(error, source) from None
    match format:
        case ExplainFormat.TEXT:
            print(as_text(plan, engine_sql, charge))
        case ExplainFormat.JSON:
            found = as_json(plan, charge)
            print(document({**found, "engine_sql": _statements(plan)}) if engine_sql else dumps(plan, charge))
    return 0


def _other(connection: Connection, source: Source, asked: Asked) -> str | None:
    """What is said of a summary, a counter or a batch; None of a query."""
    if summary_statement(source.text) is not None:
        return connection.summary_of(source.text).explain(asked.get("epsilon"), rho=asked.get("rho"))
    if (counter := counter_statement(source.text)) is not None:
        return connection.explain_counter(counter, source.text, asked.get("epsilon"), asked.get("rho"))
    if batch_statement(source.text) is None:
        return None
    batch = connection.batch_of(source.text, source.name)
    return batch.explained(batch.previewed(settled(asked, connection.settings)))


def _statements(plan: Plan) -> list[dict[str, str]]:
    return [
        {"release": release.label, "shape": str(statement.shape), "sql": statement.shown}
        for release in plan.releases
        for statement in release.statements
    ]
