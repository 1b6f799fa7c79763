"""A CLIP to bounds that its argument's type cannot hold: the sum stays within the sensitivity that was claimed.

One patient against none is as far as two neighbours get, so the exact integers of one patient are the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from dpsql.api.connection import Connection
from dpsql.core.release.noisy import exact_totals
from tests.support.checklist_clinic import DELTA, POLICY, SCHEMA, Clinic

CLIPS = (
    "CLIP(age, 2.5, 2.50001)", "CLIP(age, 0.1, 0.7)", "CLIP(age, 49.5, 60.5)", "CLIP(age, -0.5, 0.5)",
    "CLIP(big, 0.5, 1000000000.5)", "CLIP(big, 0.5, 3000000.5)", "LEAST(GREATEST(age, 2.5), 2.6)",
    "CLIP(CAST(age AS DECIMAL(9,2)), 0.125, 0.875)", "CLIP(CAST(age AS DECIMAL(9,2)), 2.505, 2.50500001)",
    "CLIP(CAST(income AS DECIMAL(18,2)), 0.0005, 1)", "CLIP(CLIP(age, 0.5, 7.5), 2.25, 2.26)", "CLIP(income, 0.1, 0.7)",
)  # fmt: skip


@pytest.fixture(scope="module")
def patients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Connection]]:
    """Sessions over one patient each."""
    with ExitStack() as stack:
        opened = []
        for age, income in ((50, 50000), (0, 0), (3, 0.5)):
            clinic = Clinic(tmp_path_factory.mktemp("clinic"))
            clinic.policy.write_text(POLICY)
            row = f"INSERT INTO patients (pid, age, big, income) VALUES (1, {age}, {age * 10**9}, {income})"
            clinic.execute(*SCHEMA, row)
            opened.append(stack.enter_context(clinic.connect()))
        yield opened


def check(patients: list[Connection], argument: str) -> None:
    for call in ("SUM", "AVG", "VAR_SAMP"):
        plan = patients[0].sql(f"SELECT {call}({argument}) FROM patients").plan(epsilon=1, delta=DELTA)
        for release in plan.releases:
            for con in patients:  # of one policy, so of one plan
                (moved,) = exact_totals(release, con.service.engine, 7).values()
                for measured, value in zip(release.measured.measurements, moved, strict=True):
                    assert abs(value) <= measured.sensitivity.linf, (call, value, measured.sensitivity)


@pytest.mark.parametrize("argument", CLIPS[:4])
def test_probe_a_clip_between_values_of_its_type(patients: list[Connection], argument: str) -> None:
    check(patients, argument)
