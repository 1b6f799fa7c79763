"""Who asks a server's catalogue."""

from __future__ import annotations

from typing import Any, Protocol


class CatalogueReader(Protocol):
    """Runs a query of the catalogue."""

    def __call__(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """values: for the places %s."""
        ...
