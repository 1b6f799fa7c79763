"""Why a database file cannot be attached, in our words: (what is wrong, the repair). DuckDB's text is never shown."""

from __future__ import annotations

import os


def unusable(path: str) -> tuple[str, str] | None:
    """What can be said before DuckDB is asked; None if nothing speaks against the file."""
    if os.path.isdir(path):
        return "is a folder", "name the DuckDB file in it, or give every table a  source:"
    if not os.path.exists(path):
        return "does not exist", "correct `database:`; relative paths are taken from the policy's folder"
    head = b""
    try:
        with open(path, "rb") as file:
            head = file.read(12)
    except OSError:
        return "may not be read by this user", "give this user permission to read the file"
    if head[:4] == b"PAR1":
        return "is a Parquet file", "declare it at a table:  source: read_parquet('…')"
    if head[8:12] != b"DUCK":
        return "is not a DuckDB database file", "name a DuckDB file, or declare other files with  source:  at a table"
    return None


def refusal(said: str, version: str) -> tuple[str, str]:
    """What DuckDB of this version meant when it would not attach a file."""
    if "Unique file handle conflict" in said:
        return (
            "is already open in this process with other settings",
            "close that connection first, or pass it:  dpsql.connect(connection, policy=…, optimizers='ours')",
        )
    if "Could not set lock" in said:
        return (
            "is open for writing in another process",
            "close it there, or name a copy of the file: readers may share it, a writer may not",
        )
    if "encrypted" in said:
        return "is encrypted", "name an unencrypted copy, or open it yourself and pass the connection"
    if "newer version of DuckDB" in said:
        return (
            f"was written by a newer DuckDB than the installed {version}",
            "upgrade:  pip install --upgrade duckdb   or write the file with an older STORAGE_VERSION",
        )
    if "older version of DuckDB" in said:
        return (
            f"was written by an old DuckDB that the installed {version} cannot read",
            "export it with the old version (EXPORT DATABASE) and import it with the new one",
        )
    return (
        "cannot be opened: the file or its write-ahead log is damaged",
        "open it once with DuckDB for writing and run CHECKPOINT, or restore it from a backup",
    )
