"""Values: immutable objects of which a plan makes hundreds, while it is planned.

*Claim.* No line of dpsql sets a field of a value once it is made. *Why.* To mypy `value` is `dataclass`, and each use
says `frozen=True`: `make check` refuses the line. *When it would be false.* A field that is set past mypy (`setattr`,
`Any`, a notebook): at run time nothing guards a value. The guard of a frozen dataclass is one call for each field of
each object that is made, and took a tenth of planning. Equality, hash, text and slots are those of the frozen one.
*Tested by* tests/core/test_values.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:
    from dataclasses import dataclass

    def value(*, frozen, slots, eq=True):
        """`dataclass(frozen=True, slots=True)`, quick to make."""
        assert frozen and slots
        return dataclass(slots=True, eq=eq, unsafe_hash=eq)


__all__ = ["value"]
