"""What was asked in the name of a session, as pages and programs are given it."""

from __future__ import annotations

from dpsql.core.ir.types import BIGINT, DOUBLE
from dpsql.faces.server.statements import Answer
from dpsql.faces.server.web.session_asking import GivenRows


def test_a_column_may_be_called_as_the_end_of_an_interval_is() -> None:
    names = ("n", "n_low", "n_high", "n_low_low", "n_low_high")
    wide = Answer(tuple((name, DOUBLE if name.count("_") > 1 else BIGINT) for name in names), [], ends=(1,))
    given = GivenRows.of(Answer((), (), more=(wide,))).more[0]
    assert [name for name, _ in given.columns] == ["n", "n_low", "n_high"]
    assert given.places == (0, 1, 2) and given.ends == {1: 3}
