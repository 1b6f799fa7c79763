"""Clients that `make test` does not install, at a server's front with fixed answers.

Their environment is made by tests/engines_elsewhere/environment.py. What cannot be had is skipped and says why; with
DPSQL_ENGINES=required that is a failure, except for psql, which no package of Python brings.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.server.front.listen import tls_context
from tests.engines_elsewhere.conftest import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401
from tests.server.front.test_opening import TLS
from tests.support.answering import Answers
from tests.support.served import Served


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def served(answers: Answers) -> Iterator[Served]:
    context = tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))
    with Served(answers, tls=context) as found:
        yield found
