"""Whether there are prepared tables of a policy's data as it is; a stale copy is named, never read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import as_prepared, prepared_tables, units_column
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.note import Note, Rank
from dpsql.engines.open import Copies, copies_of
from dpsql.planner.rewrites.bounds.read_stored_integers import ends_of, said_of
from dpsql.service.preparing.copy_sql import stored_forms
from dpsql.service.preparing.manifest import Manifest


@dataclass(frozen=True, slots=True)
class FoundCopies:
    """copies: what the engine is to read; None: the tables as they are. identity: of the copy. notes: for the analyst
    and the custodian, where a copy that would do is missing. integers: table → column → what its integers rest on."""

    copies: Copies | None = None
    identity: str = ""
    notes: tuple[Note, ...] = ()
    integers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def described(self, policy: Policy) -> Policy:
        """The policy of what is read."""
        if self.copies is None:
            return policy
        wanted = {name: policy.tables[name] for name in self.copies.tables}
        # Bounds may have changed since: what was computed for others is not read.
        units = {
            name: [c for c, form in stored_forms(t).items() if self.integers.get(name, {}).get(c) == said_of(form)]
            for name, t in wanted.items()
        }
        return as_prepared(policy, self.identity, wanted, units)


def find(policy: Policy, given: str = "") -> FoundCopies:
    """The prepared tables to read. given: what the caller brought in place of the policy's data; empty: nothing.

    Raises CannotOpen (DP008) where a table says `prepared: true` and there is no copy of the data as it is.
    """
    wanted = prepared_tables(policy)
    if not wanted:
        return FoundCopies()
    if given:
        return _without(policy, wanted, f"{given} is read, which is not prepared", "leave  prepared  out of the policy")
    repair = f"dpsql prepare {policy.file}"
    with copies_of(policy) as store:
        text = store.manifest()
        if text is None:
            return _without(policy, wanted, store.missing, repair)
        known = Manifest.read(text)
        if known is None:
            return _without(policy, wanted, "they are of another version of dpsql", repair)
        stale = known.stale(policy, store.looks(), store.version)
        if stale:
            return _without(policy, wanted, stale, repair)
        if changed := store.changed():
            return _without(policy, wanted, changed, repair)
    integers = {t.name: known.tables[t.name].integers for t in wanted}
    ends = {name: {units_column(c).name: ends_of(said) for c, said in each.items()} for name, each in integers.items()}
    looks = {t.name: known.tables[t.name].look for t in wanted}
    copies = Copies(store.place(known.identity), tuple(t.name for t in wanted), text, ends=ends, looks=looks)
    return FoundCopies(copies, known.identity, integers=integers)


def _without(policy: Policy, wanted: Sequence[Table], why: str, repair: str) -> FoundCopies:
    needed = next((t for t in wanted if t.prepared == "true"), None)
    if needed is None:
        return FoundCopies(notes=(Note(f"prepared tables are not read: {why}", Rank.SOURCE),))
    place = policy.place("tables", needed.name, "prepared")
    source, span = place if place is not None else (None, None)
    found = Diagnostic(
        "DP008", f"the prepared tables cannot be read: {why}", span=span, source=source,
        help=(f"custodian:  {repair}", "or say  prepared: auto  to have each query bound contributions meanwhile"),
        notes=("nothing was charged",),
    )  # fmt: skip
    raise CannotOpen([found])
