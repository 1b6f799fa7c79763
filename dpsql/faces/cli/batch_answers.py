"""How the answers of a batch are printed: one table below the other, each behind its query."""

from __future__ import annotations

import io
from typing import Any

from dpsql.answers.results.cell_texts import cell, reach_of
from dpsql.core.numbers.confidence import LEVEL
from dpsql.diagnostics.layout import printable
from dpsql.diagnostics.words import TOO_HIGH, TOO_LOW
from dpsql.faces.cli.table_layout import print_table
from dpsql.frontend.aggregates.formula import Ends
from dpsql.service.batches.batch_release import BatchAnswer, BatchRelease


def tables(release: BatchRelease) -> str:
    """All answers, `value ± half-width`, and a last line with what they cost."""
    out = io.StringIO()
    for answer in release.answers:
        if answer is not None:
            out.write(printable(" ".join(answer.sql.split())) + "\n")
            print_table(answer.columns, _cells(answer), out)
            out.write("\n")
    count = sum(a is not None for a in release.answers)
    plural = "" if count == 1 else "s"
    words = [f"({count} answer{plural})  spent {release.spent}", *release.notes, f"± at {float(100 * LEVEL):g} %"]
    return out.getvalue() + "; ".join(words) + "\n"


def _cells(answer: BatchAnswer) -> list[list[Any]]:
    return [
        [
            cell(value, None if (b := bounds.get(name)) is None else reach_of(value, *b), _remark(b))
            for name, value in zip(answer.columns, row, strict=True)
        ]
        for row, bounds in zip(answer.rows, answer.intervals(), strict=True)
    ]


def _remark(ends: Ends | None) -> str:
    return "" if ends is None or None not in ends else TOO_HIGH if ends[0] is None else TOO_LOW
