"""The protocol that every adapter speaks, with nothing but the standard library.

The first line on standard input is the task, as JSON: `people` and `orders` (Parquet files), `epsilon`, `delta`,
`bounds` (column → [lower, upper]), `domains` (column → values) and `limits` (of one person: `rows`, `groups`,
`rows_per_group`). The answer is `{"ready": {query: null, or why it cannot be asked}, "versions": {…}}`.

Every further line is the name of a query. The answer is `{"rows": [[key, [numbers]], …], "seconds": …}`, the key null
where there are no groups, or `{"error": …}`. Whatever a library prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

Rows = list[tuple[Any, list[float]]]
Asked = Callable[[], Rows]


def serve(open_task: Callable[[dict[str, Any]], dict[str, Asked | str]], *packages: str) -> None:
    """Answer until standard input ends. open_task: loads the data; query → how to run it once, or why it cannot be."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # written line by line: the process is killed in the end

    def answer(said: dict[str, Any]) -> None:
        answers.write(json.dumps(said, default=str) + "\n")
        answers.flush()

    queries = open_task(json.loads(sys.stdin.readline()))
    answer(
        {
            "ready": {name: query if isinstance(query, str) else None for name, query in queries.items()},
            "versions": {package: metadata.version(package) for package in packages},
        }
    )
    for line in sys.stdin:
        query = queries[line.strip()]
        assert callable(query)
        start = time.perf_counter()
        try:
            rows = query()
        except Exception as error:  # whatever a peer raises is its answer
            answer({"error": f"{type(error).__name__}: {error}"})
        else:
            answer({"rows": rows, "seconds": time.perf_counter() - start})
