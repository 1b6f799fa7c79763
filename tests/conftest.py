"""Options and settings shared by all tests."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

pytest.register_assert_rewrite("tests.support")
pytest_plugins = [
    "tests.support.canary",  # planted private values are looked for in whatever the session puts out
    "tests.support.checklist_clinic",
    "tests.support.example_data",
    "tests.support.opened_once",
    "tests.support.scanned_once",
]

# The same examples on every machine, so that a failure is the change's own; HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, derandomize=True
)
settings.register_profile("explore", settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Hypothesis also draws constants out of the modules imported so far, and those are others in each of xdist's workers,
# and after each change of dpsql. There is no setting for it; tests/deep/meta/test_same_examples.py sees it come back.
if hasattr(providers, "_get_local_constants"):
    setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010 — empty, and stays so


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite the expected halves of fixture files; read the diff afterwards"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Garbage is looked for among what tests make, and not among the tests: a tenth of all processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="session")
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expected results are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def policies() -> Path:
    """The folder of the policies that tests share."""
    return Path(__file__).resolve().parent / "fixtures" / "policies"
