"""Data that tests only read is opened once in a process, for sessions with ledgers of their own: a pytest plugin.

Opening it, and looking at its schema, takes as long as several queries.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.policy.load import parse_policy
from dpsql.service.open_data import open_data


class Kept:
    """An engine that is not closed with the first session over it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        """Not yet."""


def opened(policy: Path | str) -> tuple[Policy, Kept]:
    """A policy, given as its file or text, and its data. Neither file may be written to after that."""
    completed, engine = _opened(policy)
    return completed, Kept(engine)


@cache
def _opened(policy: Path | str) -> tuple[Policy, Engine]:
    completed, engine = open_data(parse_policy(policy) if isinstance(policy, str) else policy, None, None, None, None)
    _ENGINES.append(engine)
    return completed, engine


_ENGINES: list[Engine] = []


def pytest_sessionfinish() -> None:
    """Close them."""
    while _ENGINES:
        _ENGINES.pop().close()
    _opened.cache_clear()
