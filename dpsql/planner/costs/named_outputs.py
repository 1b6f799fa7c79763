"""Which released numbers a column of the answer shows: for wishes that name columns (max_error, weights)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import Releases, releases_of
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.walk import Tagged
from dpsql.diagnostics.errors import reject
from dpsql.planner.postprocessing.planning.unchanged_columns import is_key, shown_by


def outputs_named(
    wish: str,
    named: Mapping[str, Fraction],
    tree: Tagged[Facts],
    columns: Sequence[Column],
    found: Releases,
    *,
    whole: bool = True,
) -> dict[int, list[Fraction]]:
    """Number of a release's output column → the amounts that were given for the columns of the answer that show it.

    wish: what the names are for, as the user wrote it. A name stands for every column that bears it, in any case of
    letters. Raises Rejected DP411 for a name that is no column, and for a column that does not show released numbers
    unchanged: group keys, constants, arithmetic. whole: False for a tree of which parts were left out, once the whole
    one has been asked: what no release shows any more asks for nothing.
    """
    outputs: dict[int, list[Fraction]] = {}
    if not named:
        return outputs
    shown = shown_by(tree.node, columns, found.index, quantiles=True)
    for name, amount in named.items():
        bearers = [i for i, c in enumerate(columns) if c.name == name]
        bearers = bearers or [i for i, c in enumerate(columns) if c.name.casefold() == name.casefold()]
        if not bearers:
            raise reject(
                "DP411", f"{wish} names {name!r}, which is no column of the answer",
                help=_meant(name, [c.name for c in columns]),
            )  # fmt: skip
        for i in bearers:
            sources = [branch[i] for branch in shown]
            if whole and (not sources or None in sources):
                raise _unsuitable(wish, columns[i], tree)
            for release, position in filter(None, sources):
                outputs.setdefault(found.node(release).outputs[position].column.uid, []).append(amount)
    return outputs


def chosen_columns(tree: Tagged[Facts], columns: Sequence[Column]) -> Mapping[str, str]:
    """Name, in small letters, of a column that shows a choice unchanged → what its error is a number of."""
    found = releases_of(tree)
    noisy, shown = (shown_by(tree.node, columns, found.index, quantiles=wanted) for wanted in (False, True))
    names: dict[str, str] = {}
    for without, sources in zip(noisy, shown, strict=True):
        for c, number, source in zip(columns, without, sources, strict=True):
            if source is not None and number is None:
                release = found.node(source[0])
                (place,) = release.outputs[source[1]].recipe.components
                names[c.name.casefold()] = release.components[place].counted
    return names


def _unsuitable(wish: str, column: Column, tree: Tagged[Facts]) -> Exception:
    if is_key(tree.node, column.uid):
        return reject(
            "DP411", f"{wish} names {column.name}, a group key, which has no noise",
            help=["name columns of COUNT and SUM"],
        )  # fmt: skip
    return reject(
        "DP411",
        f"{wish} names {column.name}, which is computed from released numbers, or which a join or subquery brings in",
        help=["name columns that show one COUNT or SUM unchanged", "or ask for it in a query of its own"],
    )  # fmt: skip


def _meant(name: str, known: Sequence[str]) -> list[str]:
    close = difflib.get_close_matches(name.casefold(), [k.casefold() for k in known], n=2)
    meant = [k for k in dict.fromkeys(known) if k.casefold() in close]
    advice = [f"did you mean {' or '.join(meant)}?"] if meant else []
    return [*advice, f"its columns are {_listed(known)}"]


def _listed(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(names))
    return ", ".join(listed[:10]) + (", …" if len(listed) > 10 else "")
