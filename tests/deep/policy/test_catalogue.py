"""A draft survives any name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from dpsql.policy.load import parse_policy
from dpsql.policy.tools.draft import draft_policy

NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(
    ["null", "true", "a b", "x: y", "#", "no", "-", "*a", "ü", "😀"]
)


@given(
    st.lists(st.tuples(NAMES, st.lists(NAMES, unique_by=str.casefold, max_size=3)), unique_by=lambda t: t[0].casefold())
)
def test_draft_survives_any_name(spec: list[tuple[str, list[str]]]) -> None:
    tables = tuple(
        CatalogueTable(
            name,
            tuple(CatalogueColumn(c, "INTEGER", False) for c in columns),
            unique=((columns[0],),) if columns else (),
        )
        for name, columns in spec
    )
    policy = parse_policy(draft_policy(Catalogue(tables)))
    assert all(name in {t.name for t in tables} for name in policy.tables)
    printable = [t.name for t in tables if t.name.isprintable() and t.name.strip()]
    assert set(printable) <= set(policy.tables)
