"""A shop behind the web, for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.faces.server.statements import Ceilings, Login
from tests.support.served_shop import FINE, with_serve
from tests.support.served_web import ServedWeb, served_web
from tests.support.small_shop import make_shop


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    shop = with_serve(make_shop(tmp_path_factory.mktemp("shop"), epsilon="100"), f"{FINE}, rows: 50}}")
    robot = Login("robot", "robot", ceilings=Ceilings(per_query="0.5", per_day="0.5"))
    with served_web(shop, robot=robot, maker=Login("maker", "maker", may=("summaries",))) as found:
        yield found
