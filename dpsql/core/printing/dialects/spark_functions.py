"""How Spark spells the functions of numbers; those of texts and of dates lie in files beside.

What has no spelling here is refused by name. A spelling holds the guards that make it total: in ANSI mode Spark raises
an error where a result is out of range.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.printing.dialect import Spelling
from dpsql.core.printing.dialects.alike import ALIKE

FUNCTIONS: Mapping[str, Spelling] = {**ALIKE}
"""By the first name of the function: `core/functions/registry.py`."""

LIMITS: Mapping[str, str] = {}
"""Which calls of a function that is spelled are refused nevertheless."""
