"""Private-PGM (McKenna, Sheldon and Miklau 2019), from `mbi`: `dashboards.py IN.npz OUT.npz`.

IN: sizes, draws, iterations, and for each draw and marginal `noisy <draw> <columns>`, beside `sigma <columns>`; wanted:
lists of columns. OUT: `<draw> <columns>`, what the graphical model says of each. Columns are numbers with commas.
"""

from __future__ import annotations

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)  # before mbi is imported: it stalls in 32 bits
from mbi import Domain, LinearMeasurement, estimation  # noqa: E402


def columns_of(text: str) -> tuple[str, ...]:
    return tuple(c for c in text.split(",") if c)


def main(source: str, target: str) -> None:
    given = np.load(source)
    sizes = given["sizes"].tolist()
    domain = Domain([str(i) for i in range(len(sizes))], sizes)
    found = {}
    for draw in range(int(given["draws"])):
        measurements = [
            LinearMeasurement(
                given[name].ravel(), columns_of(name.split(" ")[2]), float(given[f"sigma {name.split(' ')[2]}"])
            )
            for name in given.files
            if name.startswith(f"noisy {draw} ")
        ]
        model = estimation.MirrorDescent().estimate(domain, measurements, iters=int(given["iterations"]))
        for text in given["wanted"].tolist():
            columns = columns_of(text)
            shape = tuple(sizes[int(c)] for c in columns)
            found[f"{draw} {text}"] = np.asarray(model.project(columns).datavector()).reshape(shape)
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
