"""`dpsql policy init`: a first policy for a DuckDB file, data files or a server, from schema and first rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dpsql.core.engine import Engine
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.server_address import names_server, parse_server
from dpsql.core.policy.source import SourceCall
from dpsql.diagnostics.errors import reject
from dpsql.faces.cli.commands.policies.drafted_files import missing_in, named, partition_columns, sort_data, told
from dpsql.faces.cli.new_files import write_text
from dpsql.policy.tools.draft import draft_policy, own_ids


def run(data: Sequence[str], output: str | None, name: str | None) -> int:
    """Raises CannotOpen DP006 for data that cannot be read; Rejected DP903 for the call."""
    from dpsql.engines.open import open_files

    servers = [address for address in data if names_server(address)]
    if servers:
        return _of_server(servers[0], data, output, name)
    database, sources = sort_data(data)
    here = Path.cwd()
    engine = open_files(None if database is None else Path(database), sources, here)
    try:
        catalogue = engine.describe()
        single = _single(engine, catalogue)
    finally:
        engine.close()
    # Paths in a policy are relative to its folder.
    folder = here if output in (None, "-") else Path(os.path.abspath(str(output))).parent
    text = draft_policy(
        catalogue,
        name=name or named(database or data[0]),
        database=None if database is None else relative(database, folder),
        sources={
            table: str(_moved(call, folder).with_options(told(call, catalogue.table(table))))
            for table, call in sources.items()
        },
        partitions={table: partition_columns(call) for table, call in sources.items()},
        missing={table: missing_in(call) for table, call in sources.items()},
        single=single,
    )
    write_text(text, output)
    return 0


def _of_server(address: str, data: Sequence[str], output: str | None, name: str | None) -> int:
    from dpsql.engines.open import open_server

    if len(data) > 1:
        raise reject("DP903", "a policy has one server, and no files beside it", help=["draft one policy for each"])
    engine = open_server(address)
    try:
        catalogue = engine.describe()
        single = _single(engine, catalogue)
    finally:
        engine.close()
    called = name or parse_server(address).database or "draft"
    write_text(draft_policy(catalogue, name=called, database=address.strip(), single=single), output)
    return 0


def _single(engine: Engine, catalogue: Catalogue) -> dict[str, frozenset[str]]:
    """Of each table the columns that look like ids, and are different in each of its first rows."""
    from dpsql.engines.first_rows import never_repeating

    return {table.name: never_repeating(engine, table.name, own_ids(table, catalogue)) for table in catalogue.tables}


def _moved(call: SourceCall, folder: Path) -> SourceCall:
    return call.with_paths(tuple(relative(path, folder) for path in call.paths))


def relative(path: str, folder: Path) -> str:
    """`path` (relative to the current folder) as a policy in `folder` has to write it."""
    expanded = os.path.expanduser(path)
    if os.path.isabs(expanded):
        return expanded
    try:
        return Path(os.path.relpath(expanded, folder)).as_posix()
    except ValueError:  # another drive
        return os.path.abspath(expanded)
