"""Worst neighbouring databases for each query of the corpus: do the integers move further than is stated and paid for?

The search is that of `dpsql audit`. It knows the plan's claims and takes none of the rules that led to them.
Run: `python neighbours.py [QUERY…]`; 1 if something is refuted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Error
from dpsql.faces.audit.audited_query import audit_query
from dpsql.faces.audit.kit.corpus import QUERIES, policy

RUNS = 4000


def refuted(name: str) -> Iterator[str]:
    """What is refuted of a query's claims."""
    try:
        found = audit_query(policy(), Source(QUERIES[name], name), runs=RUNS)
    except Error as error:
        yield f"{name}: it is not answered any more: {error.diagnostics[0].message}"
        return
    for v in found.violations:
        yield f"{name}: {v.what} of {v.component} moves by {v.seen}, stated is {v.claimed}"
    for unit in found.mispriced:
        yield f"{name}: {unit} is charged less than is lost"
    for tested in found.tested:
        if tested.refuted:
            yield f"{name}: {tested.what}, {tested.quantity}: the draws show more than is stated"


def main() -> int:
    """Prints what was found."""
    for name in sys.argv[1:] or QUERIES:
        for line in refuted(name):
            print(f"found: {line}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
