"""A small database with a canary."""

from tests.engines.conftest import engine, folder

__all__ = ["engine", "folder"]
