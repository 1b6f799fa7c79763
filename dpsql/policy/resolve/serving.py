"""`serve:` with what it leaves out filled in."""

from __future__ import annotations

from itertools import pairwise

from dpsql.core.policy import serving
from dpsql.core.policy.serving import Serving
from dpsql.policy.file.file_format import ServeFile
from dpsql.policy.issues import Issues


def resolve_serving(spec: ServeFile | None, issues: Issues) -> Serving:
    """How a server answers under the policy."""
    if spec is None:
        return Serving()
    moments = serving.DEFAULT_MOMENTS if spec.answers_at is None else tuple(spec.answers_at)
    if any(later <= earlier for earlier, later in pairwise(moments)):
        issues.add(("serve", "answers_at"), "must ascend", "answers_at: [0.2s, 1s, 5s, 30s]")
    return Serving(
        moments,
        spec.workers or 1,
        spec.threads,
        spec.memory,
        spec.connections or serving.DEFAULT_CONNECTIONS,
        spec.connections_per_user or serving.DEFAULT_CONNECTIONS_PER_USER,
        spec.queue or serving.DEFAULT_QUEUE,
        spec.rows or serving.DEFAULT_ROWS,
    )
