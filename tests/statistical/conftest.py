"""The real data of the end-to-end tests, for coverage on it."""

from tests.e2e.conftest import flights_folder, flights_tables

__all__ = ["flights_folder", "flights_tables"]
