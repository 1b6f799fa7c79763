"""A small database with a canary."""

from tests.engines.conftest import engine, folder, template

__all__ = ["engine", "folder", "template"]
