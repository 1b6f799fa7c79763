"""Keys first: private groups are chosen by a release of their own, and what follows has them as a public list.

*Claim.* Together the two lose what was charged for both. *Why.* The numbers are asked of the keys that are shown, as of
any public list: adaptive composition. Their noise is drawn afresh, so that no number is shown because it is large.
*When it would be false.* If the numbers were planned of keys that are not shown, or charged less the fewer these are.
*Tested by* tests/service/test_keys_first.py, tests/deep/core/analysis/test_keys_first.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpsql.core.ir.components import KeySource
from dpsql.planner.rewrites.rewrite_context import SHOWN_FIRST
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.stage_that_finds import StageThatFinds

if TYPE_CHECKING:
    from dpsql.core.release.noisy import NoisyRelease


@dataclass(frozen=True, slots=True)
class KeysFirst(StageThatFinds):
    """What shows the keys of a query's groups; its numbers are planned with them."""

    def with_shown(self, noisy: Sequence[NoisyRelease]) -> QuerySettings:
        """The settings of what follows, with the keys that are shown; but for those that no text of SQL can name."""
        (found,) = noisy
        origin = f"{SHOWN_FIRST}, from {found.planned.measured.shown_from:,} units on"
        keys = tuple(key for key in found.keys if not any(isinstance(v, str) and "\0" in v for v in key))
        return replace(self.settings, keys=KeySource(tuple(range(found.width)), keys, origin))
