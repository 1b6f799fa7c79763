"""From the text of a query to its plan. Read it beside `service/pipeline.py`.

    text ─ parse, bind ─▶ tree ─ rewrite ─▶ finished tree ─ stages ─▶ what each asks ─ calibrate ─▶ plan

`cheapest_form.py` rewrites it and decides which of several forms is planned, and whether limits are searched first
(`with_limits_searched.py`). `plan_of_stages.py` names the stages, and makes a plan of them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from dpsql.core.analysis.context import Context
from dpsql.core.ir import step_count as steps
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.policy.policy import Policy
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import TableNames
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.engines.open import dialect_of
from dpsql.frontend.bind.expressions.computed import with_computed
from dpsql.planner.batch.unlisted import without_lists
from dpsql.planner.cheapest_form import cheapest_form
from dpsql.planner.notes.as_written import as_written, rows_wanted
from dpsql.planner.plan import Plan
from dpsql.planner.searches.may_search import with_search_proposed, would_be_searched
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.query_to_plan import Parameters, QueryToPlan, bound_query


def compile_query(
    source: Source,
    policy: Policy,
    public: PublicFacts,
    settings: QuerySettings,
    parameters: Parameters = (),
    tables: TableNames | None = None,
    dialect: Dialect | None = None,
) -> Plan:
    """Compile one query.

    public: measured facts about public tables; what is missing is noted in it (`public.missing`).
    tables: policy table → the engine's qualified name; its own by default.
    dialect: that of the engine; by default of the one that the policy's data asks for.
    Raises Rejected with every diagnostic pointing into `source`.
    """
    target = dialect or dialect_of(policy)
    policy = with_computed(policy, target)
    policy = without_lists(policy) if settings.unlisted else policy
    ctx = Context(policy, public, policy.defaults.max_keys)
    query: QueryToPlan | None = None
    steps.begin()
    try:
        query = bound_query(source, ctx, settings, parameters, target, tables)
        return cheapest_form(query)
    except Rejected as refusal:
        found = refusal.diagnostics if query is None else rows_wanted(refusal.diagnostics, query.bound.root, source)
        if would_be_searched(found, policy, settings):
            with suppress(Rejected, RecursionError):
                searched = replace(settings, search=True)
                cheapest_form(bound_query(source, ctx, searched, parameters, target, tables))
                found = with_search_proposed(found)
        refusal.diagnostics = tuple(as_written(d.at(source)) for d in found)
        raise
    except RecursionError:
        raise reject("DP010", "the statement is nested too deeply", source=source) from None
    finally:
        steps.end()
