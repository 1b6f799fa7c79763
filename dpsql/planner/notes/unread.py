"""What a query need not read, because it has no rows whatever the data hold: it costs nothing.

Claim: the plan without these parts gives the answer that the whole plan gives over any data, but for noise that nobody
    sees; and it asks for no private row, no noise, no charge and no stored answer for them.
Why: a relation that has no rows (`core/analysis/empty_relations.py`) may stand as a relation written without rows,
which is public; so
    may a release below one, whose numbers no row shows, and one that only a release of no rows reads: that reads
    nothing, its numbers are those of empty input (`core/noise/sensitivity.py`). Facts and price are derived anew from
    what is left, so that a part left out by mistake makes a wrong answer, and never one that is not paid for.
When it would be false: a part left out of which a row, or a number, is shown. Private rows of which there are none may
    stand for themselves in the answer, and not below a release, whose numbers and price are those of its whole input.
Tested by: tests/deep/planner/test_no_rows.py, tests/planner/test_unread.py
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.core.analysis.empty_relations import never
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.nodes import Filter, Join, Limit, Node, Release, Values, output_columns
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.walk import Tagged, with_inputs
from dpsql.diagnostics.note import Note

_LONGEST = 60
"""Characters of a condition that a note repeats."""


@dataclass(slots=True)
class Unread:
    """Takes out what is not read. why: notes on what it took out, in the order of the plan, each once."""

    why: dict[Note, None] = field(default_factory=dict)

    def without(self, tree: Tagged[Facts]) -> Node:
        """The plan without the parts that are not read; the very same nodes where nothing is left out."""
        if not any(t.fact.empty for t in tree.walk()):
            return tree.node
        return self._kept(tree, below_release=False, empty=False)

    def _kept(self, tagged: Tagged[Facts], below_release: bool, empty: bool) -> Node:
        """below_release: some release reads this. empty: one of no rows does, or one that is not read itself."""
        node, facts = tagged.node, tagged.fact
        if isinstance(node, Values):
            return node
        if facts.empty and (facts.public or not below_release):
            if below_release and not any(isinstance(t.node, Release) for t in tagged.walk()):
                return node  # what a release reads stays as it is: it decides its price
            self.why.setdefault(Note(f"{_cause(tagged)}: no rows; nothing is read or charged for them"))
            return Values(output_columns(node), ())
        if isinstance(node, Release):
            if empty:
                return Values(output_columns(node), ())
            below_release, empty = True, tagged.inputs[0].fact.empty
            if empty:
                cause = _cause(tagged.inputs[0])
                self.why.setdefault(Note(f"{cause}: numbers of no rows; nothing is read or charged for them"))
        return with_inputs(node, tuple(self._kept(t, below_release, empty) for t in tagged.inputs))


def _cause(tagged: Tagged[Facts]) -> str:
    """What leaves a node without rows, as a person would write it."""
    match tagged.node:
        case Limit(count=0):
            return "LIMIT 0"
        case Filter(predicate=condition) | Join(residual=condition) if condition is not None:
            terms = conjuncts(condition)
            at = next((i for i, term in enumerate(terms) if never(term)), None)
            if at is not None:
                promised = at > 0 and terms[at - 1].span is not None and terms[at - 1].span == terms[at].span
                text = expression(terms[at - promised])
                shown = text if len(text) <= _LONGEST and text.isprintable() else "a condition"
                listed = any(isinstance(t.node, Release) for t in tagged.walk())
                why = (
                    " of a group that is listed: other rows are left out" if listed else ", as the policy promises"
                ) * promised
                return f"{shown} is never true{why}"
    return next((_cause(below) for below in tagged.inputs if below.fact.empty), "a relation that has no rows yet")
