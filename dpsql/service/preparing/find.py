"""Whether there are prepared tables of a policy's data as it is; a stale copy is named, never read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import as_prepared, prepared_tables
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.open import Copies, dialect_of, engine_version, files_of, read_manifest
from dpsql.service.preparing.manifest import Manifest, place_of


@dataclass(frozen=True, slots=True)
class Found:
    """copies: what the engine is to read; None: the tables as they are. identity: of the copy. notes: for the analyst
    and the custodian, where a copy that would do is missing."""

    copies: Copies | None = None
    identity: str = ""
    notes: tuple[str, ...] = ()

    def described(self, policy: Policy) -> Policy:
        """The policy of what is read."""
        if self.copies is None:
            return policy
        return as_prepared(policy, self.identity, {name: policy.tables[name] for name in self.copies.tables})


def find(policy: Policy, given: str = "") -> Found:
    """The prepared tables to read. given: what the caller brought in place of the policy's data; empty: nothing.

    Raises CannotOpen (DP008) where a table says `prepared: true` and there is no copy of the data as it is.
    """
    wanted = prepared_tables(policy)
    if not wanted:
        return Found()
    if given:
        return _without(policy, wanted, f"{given} is read, which is not prepared", "leave  prepared  out of the policy")
    path = place_of(policy)
    text = read_manifest(path)
    repair = f"dpsql prepare {policy.file}"
    if text is None:
        return _without(policy, wanted, f"there is no file {path.name}", repair)
    known = Manifest.read(text)
    version = f"{dialect_of(policy).name} {engine_version(policy)}"
    stale = "they are of another version of dpsql" if known is None else known.stale(policy, files_of(policy), version)
    if known is None or stale:
        return _without(policy, wanted, stale, repair)
    return Found(Copies(path, tuple(t.name for t in wanted), text), known.identity)


def _without(policy: Policy, wanted: Sequence[Table], why: str, repair: str) -> Found:
    needed = next((t for t in wanted if t.prepared == "true"), None)
    if needed is None:
        return Found(notes=(f"prepared tables are not read: {why}",))
    place = policy.place("tables", needed.name, "prepared")
    source, span = place if place is not None else (None, None)
    found = Diagnostic(
        "DP008", f"the prepared tables cannot be read: {why}", span=span, source=source,
        help=(f"custodian:  {repair}", "or say  prepared: auto  to have each query bound contributions meanwhile"),
        notes=("nothing was charged",),
    )  # fmt: skip
    raise CannotOpen([found])
