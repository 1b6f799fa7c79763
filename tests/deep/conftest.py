"""Which cases of the deep tests `.ci/run` leaves to `make test-rest`, and both to `make exhaustive`."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.support.sampled import is_chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cases that are left out are `exhaustive`; before -m is looked at.

    Of a test marked `one_in(n)`, all cases but the first of each n. Of what is left of one marked `sampled(n)`, where
    DPSQL_SAMPLE is a commit, all but one of each n: another commit chooses others, the same commit the same.
    """
    seen: Counter[tuple[str, str]] = Counter()
    commit = os.environ.get("DPSQL_SAMPLE")
    for item in items:
        test = item.nodeid.partition("[")[0]
        for name in ("one_in", *(["sampled"] if commit else [])):
            mark = item.get_closest_marker(name)
            if mark is None or item.get_closest_marker("exhaustive"):
                continue
            at, seen[name, test] = seen[name, test], seen[name, test] + 1
            if at % mark.args[0] if name == "one_in" else not is_chosen(str(commit), test, at, mark.args[0]):
                item.add_marker(pytest.mark.exhaustive)
