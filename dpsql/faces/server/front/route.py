"""Who answers a statement: the catalogue, or those who hold the data. What asks the catalogue never reaches them."""

from __future__ import annotations

import asyncio
from typing import Final

from dpsql.faces.server.statements import (
    Answer,
    Answering,
    CatalogueAnswering,
    DescribedStatement,
    Login,
    StatementSettings,
    Value,
)

_SHORT: Final = 2_000


class Route:
    """Answers by asking the catalogue first, and the others about everything else."""

    def __init__(self, answering: Answering, catalogue: CatalogueAnswering) -> None:
        self._answering, self._catalogue = answering, catalogue

    async def _who(self, sql: str) -> Answering:
        """A long text is looked at in a thread, so that others are not held up."""
        concerns = self._catalogue.concerns
        found = concerns(sql) if len(sql) <= _SHORT else await asyncio.to_thread(concerns, sql)
        return self._catalogue if found else self._answering

    async def describe(self, login: Login, sql: str, settings: StatementSettings) -> DescribedStatement:
        """As `Answering.describe`."""
        return await (await self._who(sql)).describe(login, sql, settings)

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        """As `Answering.run`."""
        return await (await self._who(described.sql)).run(login, described, values, settings, run_id)

    async def stop(self, run_id: str) -> None:
        """As `Answering.stop`."""
        await self._catalogue.stop(run_id)
        await self._answering.stop(run_id)
