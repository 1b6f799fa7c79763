"""Item 67: another parameter, policy or version of the data is another question."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tests.support.checklist_clinic import Clinic
from tests.surfaces.test_sentences_of_the_checklist import COUNT


def test_item_67_another_parameter_policy_or_data_version_is_another_question(make: Callable[..., Clinic]) -> None:
    """A stored answer is given for equal plans, parameters, policies and data versions, and for nothing else."""
    clinic = make()
    sql = f"{COUNT} WHERE age > ?"

    def paid(value: object) -> Fraction:
        with clinic.connect() as con:
            return con.execute(sql, parameters=[value], epsilon=1).spent.epsilon

    assert [paid(30), paid(30), paid(31), paid("30"), paid(30.5)] == [1, 0, 1, 0, 1]
    for old, new in (
        ("version: 1\n", 'version: 1\ndata_version: "2"\n'),
        ("bounds: [0, 110]", "bounds: [0, 111]"),
        ("max_rows_per_unit: 3", "max_rows_per_unit: 4"),
    ):
        clinic.policy.write_text(clinic.policy.read_text().replace(old, new))
        assert [paid(30), paid(30)] == [1, 0], new
