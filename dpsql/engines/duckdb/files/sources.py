"""From a `source:` as the policy writes it to one reader call over existing files with absolute literal paths.

The engine is locked to exactly these files, so patterns are expanded here, before a view is made of the call.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

from dpsql.core.engine import cannot_open
from dpsql.core.ir.types import Kind, parse_type
from dpsql.core.policy.source import Option, SourceCall, SourceError, Struct, parse_source

_WILD = frozenset("*?[]")

# Options of each reader that only say how the bytes are to be read. What is not here is refused: other options write
# tables of rejected lines, take keys, or may come to reach outside with a later version of the engine.
_COMMON = frozenset({"filename", "hive_partitioning", "hive_types", "hive_types_autocast", "union_by_name"})
_TEXT = frozenset(
    {"auto_detect", "columns", "compression", "dateformat", "ignore_errors", "sample_size", "timestampformat"}
)
_OPTIONS = {
    "read_parquet": _COMMON | {"binary_as_string", "file_row_number"},
    "read_json": _COMMON
    | _TEXT
    | {"convert_strings_to_integers", "field_appearance_threshold", "format", "map_inference_threshold"}
    | {"maximum_depth", "maximum_object_size", "records"},
    "read_csv": _COMMON
    | _TEXT
    | {"all_varchar", "allow_quoted_nulls", "auto_type_candidates", "column_names", "column_types", "comment"}
    | {"decimal_separator", "delim", "dtypes", "encoding", "escape", "force_not_null", "header", "max_line_size"}
    | {"names", "new_line", "normalize_names", "null_padding", "nullstr", "parallel", "quote", "sep", "skip"}
    | {"strict_mode", "thousands", "types"},
}


def expand_source(table: str, source: str | SourceCall, directory: Path) -> SourceCall:
    """The call that `source` stands for, its paths absolute and free of patterns, each an existing file.

    directory: what relative paths are relative to (the policy's folder).
    Raises: CannotOpen (DP006) naming the table and the path as written.
    """
    call = _parsed(table, source)
    unknown = sorted({name for name, _ in call.options} - _OPTIONS[call.reader])
    if unknown:
        raise cannot_open(
            f"the source of table `{table}` has an option that is not supported: {', '.join(unknown)}",
            f"options of {call.reader}: {', '.join(sorted(_OPTIONS[call.reader]))}",
        )
    call = _with_known_types(table, call)
    files: list[str] = []
    for written, path in zip(call.paths, call.absolute(directory).paths, strict=True):
        files.extend(_files(table, written, path, directory))
    return call.with_paths(tuple(files))


def _with_known_types(table: str, call: SourceCall) -> SourceCall:
    """The types of `hive_types` as DuckDB spells them: they are printed without quotes."""
    options: list[tuple[str, Option]] = []
    for name, value in call.options:
        if name == "hive_types":
            items = value.items if isinstance(value, Struct) else ()
            types = [(column, parse_type(type_) if isinstance(type_, str) else None) for column, type_ in items]
            if not types or any(type_ is None or type_.kind is Kind.LIST for _, type_ in types):
                raise cannot_open(
                    f"the source of table `{table}` has hive_types that are not understood",
                    "name each partition column with its type:  hive_types = {'year': 'BIGINT', 'day': 'DATE'}",
                )
            value = Struct(tuple((column, str(type_)) for column, type_ in types))
        options.append((name, value))
    return SourceCall(call.reader, call.paths, tuple(options))


def _parsed(table: str, source: str | SourceCall) -> SourceCall:
    """Read the printed form again even if it was understood before: the lock is built on nothing else."""
    problem = ""
    try:
        return parse_source(str(source))
    except SourceError as error:
        problem = str(error)
    raise cannot_open(
        f"the source of table `{table}` cannot be understood: {problem}",
        "write one call with literal paths, e.g.  source: read_parquet('data/visits.parquet')",
    )


def _files(table: str, written: str, path: str, directory: Path) -> list[str]:
    if os.path.isfile(path):
        found = [path]
    elif _WILD & set(written):
        found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not found:
            raise cannot_open(
                f"the source of table `{table}` matches no file: '{written}'",
                f"correct the pattern; relative paths are taken from {directory}",
            )
    elif os.path.isdir(path):
        raise cannot_open(
            f"the source of table `{table}` is a folder: '{written}'",
            "name the files in it by a pattern, e.g.  '" + os.path.join(written, "*.parquet") + "'",
        )
    else:
        raise cannot_open(
            f"the source of table `{table}` does not exist: '{written}'",
            f"correct the path; relative paths are taken from {directory}",
        )
    for name in found:
        if _WILD & set(name):
            raise cannot_open(
                f"the source of table `{table}` has a file whose path holds one of * ? [ ]: '{written}'",
                "rename the file or its folder: the engine would take the name for a pattern",
            )
        if not os.access(name, os.R_OK):
            raise cannot_open(
                f"the source of table `{table}` may not be read by this user: '{written}'",
                "give this user permission to read the file",
            )
    return found
