"""SmartNoise Core's quantile, by its exponential mechanism over 101 candidates at equal steps.

The package is deprecated: 0.2.2 is the last version on PyPI with its compiled library in it. It reads a CSV file anew
for each draw, and is told the number of rows, which the others are not.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import opendp.smartnoise.core as sn
from quantile_sets import Draw, asked, spaced, values_of
from serve import Asked, serve


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    folder = Path(mkdtemp())

    def load(one: dict[str, Any]) -> Any:
        values = values_of(one)
        file = folder / "values.csv"
        file.write_text("v\n" + "\n".join(map(str, values)) + "\n")
        return one, file, len(values), np.array(spaced(one, 101)).reshape(-1, 1)

    def draw_of(held: Any, p: float, epsilon: float) -> Draw:
        one, file, rows, candidates = held

        def draw() -> float:
            with sn.Analysis() as analysis:
                data = sn.Dataset(path=str(file), column_names=["v"], skip_row=True)
                found = sn.dp_quantile(
                    sn.to_float(data["v"]),
                    alpha=p,
                    candidates=candidates,
                    mechanism="Exponential",
                    privacy_usage={"epsilon": epsilon},
                    data_lower=float(one["lower"]),
                    data_upper=float(one["upper"]),
                    data_rows=rows,
                )
                analysis.release()
                return float(found.value)

        return draw

    return asked(task, load, draw_of)


serve(open_task, "opendp-smartnoise-core")
