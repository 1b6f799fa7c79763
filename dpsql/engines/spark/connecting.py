"""A session of our own on a cluster, and the words for why there is none.

Nothing that the cluster says is shown: its text may quote values. Its client is silenced: it writes the text of errors,
with the statements that failed, to standard error through loggers of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import re
import sys
import warnings
from typing import Any, Final

from dpsql.core.engine import cannot_open
from dpsql.core.policy.server_address import Server
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.spark.settings import LEAST_VERSION, SET, TESTED, TRY, foreign, unlike, unset, version_of

with warnings.catch_warnings(), contextlib.ExitStack() as imported:
    warnings.simplefilter("ignore")  # of versions of pandas, in which no result is asked for here
    if not hasattr(main := sys.modules["__main__"], "__file__"):
        main.__file__ = ""  # of `python -c`, which the client takes for a run of its own tests, and ends
        imported.callback(delattr, main, "__file__")
    from pyspark.logger import PySparkLogger
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
_TALKATIVE: Final = r"pyspark\.sql\.connect\."

_REASONS: Final = (
    ("UNAUTHENTICATED|401", "refuses the token", "put the right one into SPARK_CONNECT_AUTHENTICATE_TOKEN"),
    ("PERMISSION_DENIED|403", "lets this user not in", "grant the user the right to use the cluster"),
    ("[Nn]ame resolution|DNS", "is on a host that nobody knows", "check the host's name in the address"),
    ("SSL|TLS|handshake|certificate", "and we do not agree on TLS", "check use_ssl in the address"),
    ("UNIMPLEMENTED", "speaks no Spark Connect", "check the port in the address: 15002 is Spark's own"),
)
"""Pattern of the client's text → what we say, and a repair. The first that fits."""


def silence() -> None:
    """Have the client write nothing: every error is raised, too."""
    for name in _LOGGERS:
        logger = PySparkLogger.getLogger(name)
        logger.disabled, logger.propagate = True, False
        logger.setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module=_TALKATIVE)


def connect(server: Server) -> tuple[Any, str]:
    """A new session with our settings, and the cluster's version. Raises CannotOpen (DP006)."""
    silence()
    said, session = "", None
    try:
        session = SparkSession(connection=f"sc:{server.text[3:]}")
        client = session.client
        # A cluster that is gone is noticed soon; what lasts is a query, and not a call that gets no answer.
        client.set_retry_policies([DefaultPolicy(max_retries=2, initial_backoff=100, max_backoff=1000, jitter=0)])
        client.clear_progress_handlers()
        atexit.unregister(client._on_exit)  # which asks the cluster once more
        version = str(session.version)
        check_version(version)
        session.conf._set_all(SET, silent=False)
        return session, version
    except CannotOpen:
        dispose([session] if session is not None else [])
        raise
    except Exception as error:
        said = f"{getattr(error, 'code', lambda: '')()} {error}"
    dispose([session] if session is not None else [], release=False)
    what, help = next(
        ((what, help) for pattern, what, help in _REASONS if re.search(pattern, said)),
        ("cannot be reached", "is it running, with Spark Connect?"),
    )
    raise cannot_open(f"the cluster {server} {what}", help)


def check_version(version: str) -> None:
    """Raises CannotOpen (DP006) for a version that is too old, or none that is understood."""
    found = version_of(version)
    if found is None or found < LEAST_VERSION:
        raise cannot_open(
            f"the cluster is Spark {version[:20]}",
            f"dpsql reads Spark {'.'.join(map(str, LEAST_VERSION))} and later: earlier, temporary functions stand in "
            "the place of built-in ones",
        )


def is_tested(version: str) -> bool:
    """Whether the tests run on it."""
    return version_of(version) in TESTED


def settled(session: Any) -> CannotOpen | None:
    """Reads back every setting; what is wrong is returned, and not raised."""
    read = session.conf.getAll
    wrong = unset(read)
    if wrong:
        return cannot_open(
            f"the cluster does not keep what dpsql sets: {', '.join(wrong[:5])}",
            "nothing before it may change these settings of a session",
        )
    others = foreign(read)
    if others:
        return cannot_open(
            f"the cluster has settings that may change what is computed: {', '.join(others[:5])}",
            "start the Connect server for dpsql without them",
        )
    return None


def tried(session: Any) -> CannotOpen | None:
    """Whether built-in functions do what dpsql relies on; what is wrong is returned, and not raised."""
    table = session.sql(TRY).toArrow()
    wrong = unlike(tuple(column.to_pylist()[0] for column in table.columns))
    if wrong:
        return cannot_open(
            f"the cluster does not do what dpsql relies on: {', '.join(wrong[:5])}",
            f"dpsql is tested with Spark {', '.join('.'.join(map(str, v)) for v in TESTED)}",
        )
    return None


def dispose(held: list[Any], release: bool = True) -> None:
    """End the sessions that are held. release: whether to tell the cluster."""
    while held:
        session = held.pop()
        with contextlib.suppress(Exception):
            session.release_session_on_close = release
            session.stop()
