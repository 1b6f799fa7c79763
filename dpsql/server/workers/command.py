"""What starts a worker."""

from __future__ import annotations

import sys
from pathlib import Path

from dpsql.core.policy.serving import Serving


def command(policy: Path, serving: Serving) -> list[str]:
    """The words of a command line. A worker reads statements from its input and writes replies to its output."""
    found = [sys.executable, "-m", "dpsql.server.workers.worker", str(policy)]
    found += [] if serving.threads is None else ["--threads", str(serving.threads)]
    return found + ([] if serving.memory is None else ["--memory", serving.memory])
