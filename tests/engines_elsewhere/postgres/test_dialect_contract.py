"""What every dialect answers, on PostgreSQL: the tests of tests/engines/test_dialect_contract.py, each run here too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines.test_dialect_contract import *  # noqa: F403
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.servers import Server

for name in (
    "test_every_function_has_its_spelling_and_no_spelling_lacks_its_function",
    "test_a_function_that_cannot_be_spelled_is_refused_by_name",
    "test_a_spelling_may_refuse_what_it_is_given_and_says_why",
    "test_the_check_says_it_without_data",
):
    del globals()[name]  # which ask no engine


@pytest.fixture(scope="module")
def engine(server: Server) -> Iterator[Bare]:
    """Only what the contract asks of: a dialect, and rows of a text printed in it."""
    opened = Bare(server, POSTGRES)
    yield opened
    opened.close()
