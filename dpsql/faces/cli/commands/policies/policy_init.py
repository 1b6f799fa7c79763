"""`dpsql policy init`: a first policy for a DuckDB file, data files or a server, from schema and first rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpsql.core.engine import Engine
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.server_address import names_server, parse_server
from dpsql.core.policy.source import SourceCall
from dpsql.diagnostics.errors import reject
from dpsql.faces.cli.commands.policies.asked_decisions import ask, at_terminal
from dpsql.faces.cli.commands.policies.drafted_files import (
    named,
    partition_columns,
    sort_data,
    together,
    told,
    with_missing_words,
)
from dpsql.faces.cli.new_files import require_new, write_text
from dpsql.policy.tools.draft import Decided, draft_policy, drafted_tables
from dpsql.policy.tools.likely_units import FirstRows, id_columns, own_columns, proposals


def run(data: Sequence[str], output: str | None, name: str | None) -> int:
    """Raises CannotOpen DP006 for data that cannot be read; Rejected DP903 for the call."""
    from dpsql.engines.open import open_files

    require_new(output)
    servers = [address for address in data if names_server(address)]
    if servers:
        return _of_server(servers[0], data, output, name)
    database, sources = sort_data(data)
    read = {table: with_missing_words(call) for table, call in sources.items()}
    sources = {table: call for table, (call, _) in read.items()}
    here = Path.cwd()
    engine = open_files(None if database is None else Path(database), sources, here)
    try:
        catalogue = engine.describe()
        seen = _seen(engine, catalogue)
    finally:
        engine.close()
    # Paths in a policy are relative to its folder.
    folder = here if output in (None, "-") else Path(os.path.abspath(str(output))).parent
    text = draft_policy(
        catalogue,
        name=name or named(database or together(data)),
        decided=_asked(catalogue, sources, seen, True),
        database=None if database is None else relative(database, folder),
        sources={
            table: str(_moved(call, folder).with_options(told(call, catalogue.table(table))))
            for table, call in sources.items()
        },
        partitions={table: partition_columns(call) for table, call in sources.items()},
        told={table: said for table, (_, said) in read.items()},
        seen=seen,
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
        seen = _seen(engine, catalogue)
    finally:
        engine.close()
    called = name or parse_server(address).database or "draft"
    decided = _asked(catalogue, {}, seen, False)
    write_text(draft_policy(catalogue, name=called, database=address.strip(), seen=seen, decided=decided), output)
    return 0


def _asked(
    catalogue: Catalogue, sources: Mapping[str, SourceCall], seen: Mapping[str, FirstRows], computing: bool
) -> Decided:
    """What somebody at a terminal decides; nothing elsewhere."""
    tables = drafted_tables(catalogue, sources)
    return ask(tables, proposals(catalogue, seen, computing=computing)) if at_terminal() and tables else Decided()


def _seen(engine: Engine, catalogue: Catalogue) -> dict[str, FirstRows]:
    """What the first rows of each table tell of columns that look like ids."""
    from dpsql.engines.first_rows import never_repeating, of_one_each, whole

    found = dict[str, FirstRows]()
    for table in catalogue.tables:
        ids = id_columns(table)
        doubles = [c for c in ids if (column := table.column(c)) is not None and column.type == "DOUBLE"]
        whole_numbers = whole(engine, table.name, doubles)
        found[table.name] = FirstRows(never_repeating(engine, table.name, ids), whole_numbers)
    likely = proposals(catalogue, found)
    for table in (t for t in catalogue.tables if t.name in likely):
        pairs = own_columns(table, likely[table.name], found[table.name])
        own = {unit: of_one_each(engine, table.name, unit, others) for unit, others in pairs.items()}
        found[table.name] = replace(found[table.name], own=own)
    return found


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
