"""`dpsql query` of a batch: the counts and sums of a file, measured together and paid for once."""

from __future__ import annotations

import sys
from typing import Any

from dpsql.api.connection import Connection
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.note import note_records
from dpsql.faces.cli.answer_text import as_json_bounds, loss_json
from dpsql.faces.cli.batch_answers import tables
from dpsql.faces.cli.exits import complain
from dpsql.faces.cli.json_text import document
from dpsql.faces.cli.options import Format
from dpsql.service.batches.batch import Batch
from dpsql.service.batches.batch_release import BatchAnswer
from dpsql.service.privacy_settings import Asked, settled


def run(connection: Connection, batch: Batch, asked: Asked, fresh: bool, format: Format) -> int:
    """Raises dpsql.Error; nothing is charged unless an answer (or DP901) comes."""
    if format not in (Format.TABLE, Format.JSON):
        raise reject("DP903", f"a batch is not printed as {format.value}", help=["--format table  or  --format json"])
    plan = batch.planned_with(settled(asked, connection.settings))
    release = batch.answered(connection.run(plan, fresh=fresh))
    for refusal in release.refused.values():
        complain(refusal.diagnostics)
    if format is Format.JSON:
        answers = [None if a is None else _json(a) for a in release.answers]
        data = {"answers": answers, "spent": loss_json(release.spent), "notes": note_records(release.notes)}
        sys.stdout.write(document(data) + "\n")
        return 0
    sys.stdout.write(tables(release))
    return 0


def _json(answer: BatchAnswer) -> dict[str, Any]:
    return {
        "sql": answer.sql,
        "columns": list(answer.columns),
        "rows": [list(row) for row in answer.rows],
        "intervals": as_json_bounds(answer.intervals()),
    }
