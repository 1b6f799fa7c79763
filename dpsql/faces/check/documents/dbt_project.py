"""A compiled dbt project as it lies on disk: its models and analyses, raw and compiled, and what they read.

Read from `target/manifest.json` (schemas 10 to 12, dbt 1.6 to 1.10), or from `target/compiled` where there is none. dbt
itself is neither needed nor run. What the check does not use is not looked at; what it uses must have the right form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.faces.check.documents.checkout import require_inside
from dpsql.frontend.dialects import DIALECTS

VERSIONS: Final = range(10, 13)
_MOST_BYTES: Final = 200_000_000
_COMPILE = "run  dbt compile  in the project first"
_CHECKED = ("model", "analysis")
_PART = re.compile(r'"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|([^."`\[\]\s]+)')


@dataclass(frozen=True, slots=True)
class Model:
    """One node of the project that is a query.

    id: as dbt calls it (model.clinic.visits_by_ward). kind: model, analysis or test. raw: the file as it was written.
    compiled: dbt's SQL; compiled_path: where dbt wrote it. relation: the parts of its name in the warehouse, in lower
    case; empty if it has none. reads: ids of the nodes it refers to; None if not known. injected: the ephemeral models
    that dbt put into `compiled`. wanted: whether its own configuration says that it is checked; None: it says nothing.
    """

    id: str
    name: str
    kind: str
    raw: Source
    compiled: str
    compiled_path: str
    relation: tuple[str, ...] = ()
    reads: tuple[str, ...] | None = None
    injected: tuple[str, ...] = ()
    ephemeral: bool = False
    wanted: bool | None = None


@dataclass(frozen=True, slots=True)
class DbtProject:
    """folder: of the project, as the user named it. dialect: of the warehouse, if dpsql reads it; else None."""

    folder: Path
    models: tuple[Model, ...]
    dialect: str | None = None


def read_project(folder: str | Path, target: str = "target") -> DbtProject:
    """The compiled project in a folder.

    Raises Rejected DP903: nothing compiled, an unknown form, a model that has changed since.
    """
    root = Path(folder)
    manifest = root / target / "manifest.json"
    if manifest.is_file():
        return _from_manifest(root, manifest)
    compiled = root / target / "compiled"
    if compiled.is_dir():
        return _from_compiled(root, compiled)
    raise reject(
        "DP903", f"{str(root)!r} is not a compiled dbt project: there is neither {target}/manifest.json nor "
        f"{target}/compiled in it", help=[_COMPILE, "name the folder of dbt_project.yml:  --dbt DIR"],
    )  # fmt: skip


def parts_of(relation: str) -> tuple[str, ...]:
    """The parts of a relation's name as a warehouse writes it, in lower case and without quotes."""
    found = (next(group for group in match.groups() if group) for match in _PART.finditer(relation))
    return tuple(part.lower() for text in found for part in text.split("."))


# --- with a manifest -------------------------------------------------------------------------------------------------


def _from_manifest(root: Path, manifest: Path) -> DbtProject:
    content = _read_json(manifest)
    metadata = _field(content, "metadata", Mapping, manifest)
    version = re.search(r"/v(\d+)\.json$", str(metadata.get("dbt_schema_version", "")))
    if version is None or int(version[1]) not in VERSIONS:
        raise reject(
            "DP903", f"{str(manifest)!r} is a manifest of another form than {VERSIONS[0]} to {VERSIONS[-1]}",
            help=["compile the project with dbt 1.6 to 1.10:  pip install 'dbt-core>=1.6,<1.11'"],
        )  # fmt: skip
    models = []
    nodes = _field(content, "nodes", Mapping, manifest)
    for key in sorted(nodes):
        node = nodes[key]
        if not isinstance(node, Mapping):
            raise _malformed(manifest, f"nodes.{key}")
        own = node.get("package_name") == metadata.get("project_name", node.get("package_name"))
        if own and _is_checked(node) and node.get("language", "sql") == "sql" and _enabled(node):
            models.append(_model(root, manifest, key, node))
    if not models:
        raise reject("DP903", f"{str(manifest)!r} lists no SQL model", help=[_COMPILE])
    adapter = str(metadata.get("adapter_type", "")).lower()
    adapter = {"databricks": "spark", "redshift": "postgres", "sqlserver": "tsql"}.get(adapter, adapter)
    return DbtProject(root, tuple(models), adapter if adapter in DIALECTS else None)


def _model(root: Path, manifest: Path, key: str, node: Mapping[str, Any]) -> Model:
    path = _field(node, "original_file_path", str, manifest, key)
    compiled = node.get("compiled_code")
    if not isinstance(compiled, str):
        raise reject(
            "DP903", f"the dbt project is parsed, but not compiled: {path} has no compiled code", help=[_COMPILE]
        )
    raw = _raw(root, path)
    stored = node.get("raw_code")
    if isinstance(stored, str) and _plain(stored) != _plain(raw.text):
        raise reject("DP903", f"{path} has changed since it was compiled", help=[_COMPILE])
    config = node.get("config")
    config = config if isinstance(config, Mapping) else {}
    depends = node.get("depends_on")
    reads = depends.get("nodes") if isinstance(depends, Mapping) else None
    relation = node.get("relation_name")
    put = node.get("extra_ctes")
    injected = [cte.get("sql") for cte in (put if isinstance(put, list) else ()) if isinstance(cte, Mapping)]
    return Model(
        key,
        _field(node, "name", str, manifest, key),
        _field(node, "resource_type", str, manifest, key),
        raw,
        compiled,
        str(node.get("compiled_path") or f"target/compiled/{path}"),
        parts_of(relation) if isinstance(relation, str) else (),
        tuple(read for read in reads if isinstance(read, str)) if isinstance(reads, list) else None,
        tuple(text.strip() for text in injected if isinstance(text, str) and text.strip()),
        config.get("materialized") == "ephemeral",
        _wanted(config.get("meta")),
    )


def _is_checked(node: Mapping[str, Any]) -> bool:
    """Whether it is a query that somebody asks: a test is one only if it says so, and has a file of its own."""
    if node.get("resource_type") in _CHECKED:
        return True
    config = node.get("config")
    wanted = isinstance(config, Mapping) and _wanted(config.get("meta")) is True
    own_file = str(node.get("original_file_path", "")).endswith(".sql")  # of others a schema.yml
    return wanted and own_file and node.get("resource_type") == "test"


def _enabled(node: Mapping[str, Any]) -> bool:
    config = node.get("config")
    return not (isinstance(config, Mapping) and config.get("enabled") is False)


def _wanted(meta: object) -> bool | None:
    """`meta: {dpsql: {check: false}}` of a model."""
    own = meta.get("dpsql") if isinstance(meta, Mapping) else None
    said = own.get("check") if isinstance(own, Mapping) else None
    return said if isinstance(said, bool) else None


def _read_json(path: Path) -> Mapping[str, Any]:
    require_inside(str(path))
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise reject("DP903", f"{str(path)!r} is larger than {_MOST_BYTES // 1_000_000} MB")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise reject("DP903", f"{str(path)!r} cannot be read as JSON", help=[_COMPILE]) from None
    if not isinstance(content, Mapping):
        raise _malformed(path, "the manifest")
    return content


def _field(record: Mapping[str, Any], name: str, kind: type, path: Path, within: str = "") -> Any:
    found = record.get(name)
    if not isinstance(found, kind):
        raise _malformed(path, f"{within}.{name}" if within else name)
    return found


def _malformed(path: Path, where: str) -> Rejected:
    return reject(
        "DP903", f"{str(path)!r} is not a dbt manifest: {where} is missing or of another form", help=[_COMPILE]
    )


# --- without one -----------------------------------------------------------------------------------------------------


def _from_compiled(root: Path, compiled: Path) -> DbtProject:
    """target/compiled/PACKAGE/PATH holds the SQL of PATH."""
    models = []
    for path in sorted(compiled.rglob("*.sql")):
        own = Path(*path.relative_to(compiled).parts[1:])
        if path.is_file() and (root / own).is_file():  # a generic test has no file of its own
            kind = "analysis" if own.parts[0] == "analyses" else "model"
            if own.parts[0] not in ("tests", "snapshots", "macros"):
                shown = str(path.relative_to(root))
                models.append(Model(own.stem, own.stem, kind, _raw(root, str(own)), _text(path), shown))
    if not models:
        raise reject("DP903", f"{str(compiled)!r} holds no SQL of this project", help=[_COMPILE])
    return DbtProject(root, tuple(models))


# --- files -----------------------------------------------------------------------------------------------------------


def _raw(root: Path, path: str) -> Source:
    """The model as the user wrote it, named from where the user stands."""
    place = root / path
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise reject("DP903", f"the dbt manifest names a file outside of the project: {path!r}", help=[_COMPILE])
    return Source(_text(place), str(place))


def _text(path: Path) -> str:
    require_inside(str(path))
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise reject("DP903", f"{str(path)!r} is gone since the project was compiled", help=[_COMPILE]) from None
    except (OSError, ValueError):
        raise reject("DP903", f"{str(path)!r} cannot be read as UTF-8 text") from None


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
