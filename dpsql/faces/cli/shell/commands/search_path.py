"""`SET search_path`, which whoever comes from PostgreSQL types: read, and answered by what this shell has of schemas.

A name without a schema is looked up in the policy, where every table has one name; `public.` and `main.` may stand
before it. So a path of these changes nothing, and any other is refused, with the names to write instead.
"""

from __future__ import annotations

import re
from typing import Final

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.faces.cli.shell.state import Shell
from dpsql.policy.issues import listed

_SPOKEN: Final = re.compile(
    r"\s*(?:SET\s+(?:SESSION\s+|LOCAL\s+)?search_path\s*(?:=|\bTO\b)\s*(?P<path>[^;]+?)"
    r"|(?P<reset>RESET)\s+search_path|(?P<show>SHOW)\s+search_path)\s*;?\s*",
    re.IGNORECASE,
)
USUAL: Final = ("public", "main")
_NOBODYS: Final = ("$user", "pg_catalog", "default")


def spoken(shell: Shell, sql: str) -> bool:
    """Whether this was about the search path; then it is answered. Raises Rejected DP903 for other schemas."""
    found = _SPOKEN.fullmatch(sql) if len(sql) < 1_000 else None
    if found is None:
        return False
    if found["show"]:
        shell.output.line(", ".join(USUAL))
        return True
    for schema in [] if found["path"] is None else _schemas(found["path"]):
        accept(shell.connection.policy, schema)
    if shell.prompting and not shell.quiet:
        shell.output.tell(f"search_path: {', '.join(USUAL)}, as always: tables are found by the names of the policy")
    return True


def _schemas(path: str) -> list[str]:
    return [part.strip().strip("'\"").casefold() for part in path.split(",") if part.strip()]


def accept(policy: Policy, schema: str) -> None:
    """Raise Rejected DP903 for a schema that would change where names are looked up."""
    inside = [t.name for t in policy.tables.values() if t.name.casefold().startswith(f"{schema}.")]
    if schema in (*USUAL, *_NOBODYS) or (not inside and schema in _catalogues(policy)):
        return
    if inside:
        raise reject(
            "DP903", f"tables of the schema {schema!r} are named with it, whatever the search path",
            help=[f"write  {listed(inside[:4])}"],
        )  # fmt: skip
    raise reject("DP903", f"the policy has no schema {schema!r}", help=["\\d  lists its tables"])


def _catalogues(policy: Policy) -> set[str]:
    return {schema for table in policy.tables.values() for schema in policy.schemas_of(table)}
