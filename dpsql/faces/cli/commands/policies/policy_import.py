"""`dpsql policy import`: another system's set-up as a policy with its decisions open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dpsql.core.ir.types import parse_type
from dpsql.core.policy.catalogue import Catalogue, CatalogueTable
from dpsql.core.policy.server_address import names_server
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.faces.cli.commands.policies.drafted_files import Sources, sort_data, told, with_missing_words
from dpsql.faces.cli.commands.policies.policy_init import relative
from dpsql.faces.cli.new_files import require_new, write_text
from dpsql.faces.cli.options import System
from dpsql.frontend.privacy_ddl import of_bigquery, of_snowflake
from dpsql.policy.file.scalars import usable_name
from dpsql.policy.file.yaml_text import read_yaml
from dpsql.policy.imported.as_yaml import written
from dpsql.policy.imported.scripts import of_opendp, of_tumult
from dpsql.policy.imported.set_up import Imported, ImportedTable, NotUnderstood
from dpsql.policy.imported.smartnoise import of_smartnoise


def run(file: str, data: Sequence[str], system: System | None, output: str | None, name: str | None) -> int:
    """Raises Rejected DP903 for a file that is no such set-up; CannotOpen DP006 for data that cannot be read."""
    require_new(output)
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise reject("DP903", f"{file!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    asked = system or _looks_like(file, text)
    try:
        found = _READERS[asked](file, text)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        why = error if isinstance(error, NotUnderstood) else "something in it is not as documented"
        raise reject(
            "DP903", f"{file!r} is no set-up of {asked.value} that can be read: {why}",
            help=["say with --from whose it is", "or draft a policy from the data:  dpsql policy init DATA"],
        ) from None  # fmt: skip
    if name is not None:
        found.name = name
    folder = Path.cwd() if output in (None, "-") else Path(output or "").absolute().parent
    beside = [path for table in found.tables.values() if (path := table.file) and (Path(file).parent / path).is_file()]
    _with_data(found, data or [str(Path(file).parent / path) for path in beside], folder)
    write_text(written(found), output)
    return 0


def _smartnoise(file: str, text: str) -> Imported:
    return of_smartnoise(read_yaml(Source(text, file), Path(file).absolute().parent))


_READERS: Mapping[System, Callable[[str, str], Imported]] = {
    System.SMARTNOISE: _smartnoise,
    System.OPENDP: lambda _, text: of_opendp(text),
    System.TUMULT: lambda _, text: of_tumult(text),
    System.BIGQUERY: lambda _, text: of_bigquery(text),
    System.SNOWFLAKE: lambda _, text: of_snowflake(text),
}


def _looks_like(file: str, text: str) -> System:
    match Path(file).suffix.lower():
        case ".yaml" | ".yml":
            return System.SMARTNOISE
        case ".py":
            return System.TUMULT if "tmlt" in text else System.OPENDP
        case ".sql" | ".ddl":
            return System.BIGQUERY if "differential_privacy_policy" in text else System.SNOWFLAKE
    raise reject("DP903", f"{file!r} tells not whose set-up it is", help=["say it with --from"])


def _with_data(found: Imported, data: Sequence[str], folder: Path) -> None:
    """Where the tables are, and the types that they have there."""
    if not data:
        for table in found.tables.values():
            if table.file:
                table.open.append(f"it was read from {one_line(table.file)}, which is not here: import it with DATA")
        return
    servers = [address for address in data if names_server(address)]
    if servers:
        from dpsql.engines.open import open_server

        engine, found.database = open_server(servers[0]), servers[0].strip()
        sources: Sources = {}
    else:
        from dpsql.engines.open import open_files

        database, named = sort_data(data)
        sources = {table: with_missing_words(call)[0] for table, call in named.items()}
        found.database = "" if database is None else relative(database, folder)
        engine = open_files(None if database is None else Path(database), sources, Path.cwd())
    try:
        catalogue = engine.describe()
    finally:
        engine.close()
    for table in found.tables.values():
        known = _same(table, found, catalogue)
        if known is None:
            table.open.append("the data that was named has no such table")
            continue
        call = sources.get(known.name)
        if call is not None:
            moved = call.with_paths(tuple(relative(path, folder) for path in call.paths))
            table.source = str(moved.with_options(told(call, known)))
        for column in known.columns:
            type_ = parse_type(column.type)
            if type_ is not None and usable_name(column.name) and (not table.whole or _has(table, column.name)):
                table.column(column.name).type = type_.name.lower()


def _same(table: ImportedTable, found: Imported, catalogue: Catalogue) -> CatalogueTable | None:
    """The table of this name; where there is one alone on both sides, that one."""
    named = [known for known in catalogue.tables if known.name.casefold() == table.name.casefold()]
    alone = len(found.tables) == len(catalogue.tables) == 1
    return named[0] if named else catalogue.tables[0] if alone else None


def _has(table: ImportedTable, name: str) -> bool:
    return name.casefold() in {column.casefold() for column in table.columns}
