"""SmartNoise SQL has no quantile: its grammar knows PERCENTILE_CONT, and its reader refuses it. It is asked anyway."""

from __future__ import annotations

import sqlite3
from typing import Any

import snsql
from quantile_sets import asked
from serve import Asked, serve


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (v)")
    column = {"type": "float", "lower": 0.0, "upper": 1.0}
    metadata = {"": {"main": {"t": {"row_privacy": True, "v": column}}}}
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    reader = snsql.from_connection(connection, privacy=privacy, metadata=metadata, engine="sqlite")
    try:
        reader.execute("SELECT PERCENTILE_CONT(v) AS p FROM main.t")
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return dict.fromkeys(asked(task, dict, lambda *_: float), reason)
    raise AssertionError("SmartNoise SQL has a quantile now: measure it")


serve(open_task, "smartnoise-sql")
