"""The command line over a clinic whose ledger is the test's own."""

from tests.support.command_line import clinic, clinic_data, dpsql, process

__all__ = ["clinic", "clinic_data", "dpsql", "process"]
