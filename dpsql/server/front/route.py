"""Who answers a statement: the catalogue, or those who hold the data. What asks the catalogue never reaches them."""

from __future__ import annotations

import re
from typing import Final

from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.server.statements import Answer, Answering, Catalogue, Described, Login, Refused, Settings, Value

_CATALOGUE: Final = re.compile(
    r"\bpg_catalog\s*\.|\binformation_schema\s*\.|\b(?:FROM|JOIN)\s+pg_\w+|\bpg_\w+\s*\("
    r"|\b(?:current_schemas?|current_database|current_user|session_user|version|current_setting|set_config|format_type|"
    r"obj_description|col_description|has_\w+_privilege)\s*\("
    r"|^\s*SELECT\s+(?:current_user|session_user|user|current_catalog|current_schema)\s*$",
    re.IGNORECASE,
)


class NoCatalogue:
    """Refuses every question about the schema by name."""

    def concerns(self, sql: str) -> bool:
        """Whether a relation or a function of PostgreSQL's catalogue is named, in a comment or a text, too."""
        return _CATALOGUE.search(sql) is not None

    async def describe(self, login: Login, sql: str, settings: Settings) -> Described:
        """Raises Refused."""
        found = _CATALOGUE.search(sql)
        span = Span(0, 1) if found is None else Span(*found.span())
        raise Refused(
            [
                Diagnostic(
                    "DP101", "this question about the catalogue is not answered here", Source(sql), span,
                    help=("SHOW TABLES", "DESCRIBE table"),
                )
            ],
            "0A000",
        )  # fmt: skip

    async def run(
        self, login: Login, described: Described, values: tuple[Value, ...], settings: Settings, run_id: str
    ) -> Answer:
        """Raises Refused."""
        await self.describe(login, described.sql, settings)
        raise AssertionError("describe refuses")

    async def stop(self, run_id: str) -> None:
        """Nothing runs."""


class Route:
    """Answers by asking the catalogue first, and the others about everything else."""

    def __init__(self, answering: Answering, catalogue: Catalogue) -> None:
        self._answering, self._catalogue = answering, catalogue

    def _who(self, sql: str) -> Answering:
        return self._catalogue if self._catalogue.concerns(sql) else self._answering

    async def describe(self, login: Login, sql: str, settings: Settings) -> Described:
        """As `Answering.describe`."""
        return await self._who(sql).describe(login, sql, settings)

    async def run(
        self, login: Login, described: Described, values: tuple[Value, ...], settings: Settings, run_id: str
    ) -> Answer:
        """As `Answering.run`."""
        return await self._who(described.sql).run(login, described, values, settings, run_id)

    async def stop(self, run_id: str) -> None:
        """As `Answering.stop`."""
        await self._catalogue.stop(run_id)
        await self._answering.stop(run_id)
