"""Requests made of the API's own description, right ones and wrong ones: every response is one that it describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.served import PASSWORD
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, served_web
from tests.support.small_shop import make_shop

schemathesis = pytest.importorskip("schemathesis")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    shop = with_serve(make_shop(tmp_path_factory.mktemp("shop"), epsilon="100"), f"{FINE}}}")
    with served_web(shop) as found:
        yield found


def test_every_response_is_described(web: ServedWeb) -> None:
    """Left out: that what fits the description is accepted (a text may be no query), and that passwords are its own."""
    from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

    schema = schemathesis.openapi.from_url(f"{web.urls[0]}api/v1/openapi.json")
    seen = set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def one(case: Any) -> None:
            response = case.call(auth=("ana", PASSWORD))
            case.validate_response(response, excluded_checks=[positive_data_acceptance, ignored_auth])
            assert "Traceback" not in response.text

        one()
        seen.add(operation.label)
    assert len(seen) == 8, seen


def test_nothing_was_spent_by_them(web: ServedWeb) -> None:
    """What is made of a description knows no table."""
    assert web.server.shop.spent() == 0 and all(e.price == "" for e in web.log.events)
