"""SQLAlchemy's pools: one connection for all threads, and settings that end with the one who set them."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any, Final

from sqlalchemy import pool

from dpsql.diagnostics.errors import Error
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.privacy_settings import setting

_USERS: Final = "dpsql users"
_BEFORE: Final = "dpsql settings before"


class OneConnection(pool.StaticPool):
    """One connection for all threads; unlike StaticPool it opens no second one when several threads come first."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._opening = threading.Lock()

    def _do_get(self) -> Any:
        with self._opening:
            return super()._do_get()


class PoolUsers:
    """Of a pool: who holds a connection, so that settings go back to what they were when nobody does any more.

    A connection that several threads share has one set of settings, so the last of them counts. One that was let go
    without being closed is seen when the connection is taken out again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self, opened: Any, record: Any, user: Any) -> None:
        """Remember what holds before the first user comes."""
        with self._lock, contextlib.suppress(Error):
            users = record.info.setdefault(_USERS, weakref.WeakSet())
            if not any(other.dbapi_connection is not None for other in users):
                _go_back(opened, record.info)
                record.info[_BEFORE] = opened.settings
            users.add(user)

    def give_back(self, opened: Any, record: Any, state: Any) -> None:
        """Once nobody holds it but the one who returns it."""
        with self._lock, contextlib.suppress(Error):
            if record is not None and sum(u.dbapi_connection is not None for u in record.info.get(_USERS, ())) <= 1:
                _go_back(opened, record.info)


def _go_back(opened: Any, info: dict[str, Any]) -> None:
    before: QuerySettings | None = info.pop(_BEFORE, None)
    if before is not None:
        opened.set(*(("epsilon", before.epsilon) if before.rho is None else ("rho", before.rho)))
        opened.set("delta", before.delta)
        opened.set("allow_dearer", before.allow_dearer)
        opened.set("coverage", before.coverage)
        opened.set("consistent_totals", before.consistent_totals)
        opened.set("limits", setting(before, "limits"))
