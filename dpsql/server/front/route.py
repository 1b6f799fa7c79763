"""Who answers a statement: the catalogue, or those who hold the data. What asks the catalogue never reaches them."""

from __future__ import annotations

from dpsql.server.statements import Answer, Answering, Catalogue, Described, Login, Settings, Value


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
