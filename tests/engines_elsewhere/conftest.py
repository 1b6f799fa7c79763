"""Tests on engines that `make test` does not install. Each engine has an environment of its own (environment.py).

Where an engine cannot be had, its tests are skipped, and say why; with DPSQL_ENGINES=required they fail instead.
"""

from __future__ import annotations

import os

import pytest

REQUIRED = os.environ.get("DPSQL_ENGINES") == "required"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    """A test that is skipped has failed where the engines are required."""
    report: pytest.TestReport = yield
    return _failed(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> object:
    """The same for a file or a folder of tests."""
    report: pytest.CollectReport = yield
    return _failed(report)


def _failed(report: pytest.TestReport | pytest.CollectReport) -> object:
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and DPSQL_ENGINES=required: {report.longrepr}"
    return report
