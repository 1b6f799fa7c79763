"""Clients that `make test` does not install, at a server's front with fixed answers.

Their environment is made by tests/engines_elsewhere/environment.py. What cannot be had is skipped and says why; with
DPSQL_ENGINES=required that is a failure, except for what no package of Python brings (`OF_THE_SYSTEM` of clients.py):
then the run ends with the line that installs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.faces.server.catalogue.catalogue_asking import CatalogueOfLogins
from dpsql.faces.server.front.listen import tls_context
from dpsql.policy.load import load_policy
from tests.clients_elsewhere.clients import CLIENTS, OF_THE_SYSTEM, missing
from tests.engines_elsewhere.conftest import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401
from tests.faces.server.front.test_opening import TLS
from tests.support import recorded_catalogue
from tests.support.answering import Answers
from tests.support.served import Served


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What this machine has not, and how to install it."""
    if packages := [package for package in OF_THE_SYSTEM if missing(package)]:
        away = ", ".join(client.name for client in CLIENTS if client.package in packages)
        terminalreporter.write_line(f"left out: {away}.  apt-get install {' '.join(packages)}")


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def served(answers: Answers, tmp_path: Path) -> Iterator[Served]:
    """With TLS, and with the catalogue of the recorded clinic."""
    (tmp_path / "clinic.yaml").write_text(recorded_catalogue.POLICY, encoding="utf-8")
    catalogue = CatalogueOfLogins(load_policy(tmp_path / "clinic.yaml"))
    context = tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))
    with Served(answers, tls=context, catalogue=catalogue) as found:
        yield found
    catalogue.close()
