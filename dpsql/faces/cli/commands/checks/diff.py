"""`dpsql diff`: what has become of the queries of a repository since another commit. 0 shown, 1 worse, 2 could not."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsql.diagnostics.errors import CannotOpen, Rejected, reject
from dpsql.faces.cli import exits
from dpsql.faces.cli.inputs import decoded

if TYPE_CHECKING:
    from dpsql.core.policy.policy import Policy
    from dpsql.faces.check.documents.discovery import WantedFiles
    from dpsql.faces.check.documents.document import Document
    from dpsql.faces.check.documents.repository import Revision
    from dpsql.faces.check.examine.check_settings import CheckSettings
    from dpsql.faces.check.report.diff_formats import PolicyState

EXIT_CODES = "Exit codes: 0 compared, 1 something is worse (with --fail-on-worse), 2 could not compare."


class DiffFormat(StrEnum):
    """`--output-format` of `dpsql diff`."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def diff(
    against: Annotated[
        str, typer.Option("--against", metavar="REF", help="The older version: a branch, tag or commit of git.")
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATHS", help="Files and folders (their *.sql). Default: the current folder."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="POLICY", help="The policy file. Default: the configuration's."),
    ] = None,
    output_format: Annotated[
        DiffFormat, typer.Option("--output-format", help="How to print; markdown is for a pull request's comment.")
    ] = DiffFormat.TEXT,
    fail_on_worse: Annotated[
        bool, typer.Option("--fail-on-worse", help="1 if a query is newly refused, or costs or reveals more.")
    ] = False,
    dialect: Annotated[
        str | None, typer.Option("--dialect", metavar="NAME", help="The SQL dialect. Default: the configuration's.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="NAME=VALUE", help="Check $NAME with this, now and then; repeatable."),
    ] = None,
) -> int:
    """Compare stability, sensitivity, cost and expected errors of queries with those of another commit.

    The policy of that commit counts for its queries, so a change of the policy alone shows, too. No data is needed.
    """
    return run(paths or ["."], against, policy, output_format.value, fail_on_worse, dialect, parameter or ())


def run(
    paths: Sequence[str],
    against: str,
    policy: str | None,
    format: str,
    fail_on_worse: bool,
    dialect: str | None,
    parameters: Sequence[str] = (),
) -> int:
    """Raises dpsql.Error if nothing could be compared."""
    from dpsql.faces.check.documents.repository import open_revision
    from dpsql.faces.check.examine.check_settings import Asked, settle
    from dpsql.faces.check.examine.run_check import load
    from dpsql.faces.check.report.diff import Side, compare
    from dpsql.faces.check.report.diff_formats import FORMATS, About

    if "-" in paths:
        raise reject("DP903", "standard input has no older version", help=["name files or folders"])
    settings = settle(Asked(policy=policy, dialect=dialect, cache=False, parameters=parameters), Path.cwd())
    if settings.making.dbt is not None:
        raise reject(
            "DP903", "dpsql diff reads files in git, and what dbt compiled of older models is not there",
            help=["keep a configuration without `dbt` beside queries that are SQL themselves"],
        )  # fmt: skip
    now = load(settings)
    revision = open_revision(against, Path.cwd())
    new = _now(paths, settings)
    old, known = _then(paths, settings, revision, new)
    if not old and not new:
        raise reject("DP903", f"no *.sql file in {', '.join(paths)}, now or then", help=["name files or folders"])
    then, state = _policy_then(known, now, f"{against}:{settings.policy}")
    options = settings.options
    comparison = compare(Side(old, then), Side(new, now), options.dialect, options.parameters, options.search)
    print(FORMATS[format](comparison, About(against, revision.commit, settings.policy, state)))
    return exits.CHECK_FINDINGS if fail_on_worse and comparison.worse else exits.OK


def _now(paths: Sequence[str], settings: CheckSettings) -> dict[str, Document]:
    """Path, as somebody in the current folder would write it → file. Raises Rejected DP903 for what cannot be read."""
    from dpsql.faces.cli.commands.checks.check import read_documents

    there = [path for path in paths if os.path.lexists(path) or glob.glob(path, recursive=True)]  # others were, maybe
    documents, refused = read_documents(there, settings)
    if refused:
        raise Rejected(refused)
    return {_shown(Path(document.name)): document for document in documents}


def _then(
    paths: Sequence[str], settings: CheckSettings, revision: Revision, now: Mapping[str, Document]
) -> tuple[dict[str, Document], bytes | None]:
    """The files of the commit that the paths stand for, named in the same way; and its policy file, if it has one.

    now: the files that are there. Raises Rejected DP903 for one of which the commit does not say what it was.
    """
    from dpsql.faces.check.documents.document import Document
    from dpsql.faces.cli.commands.checks.check import maker

    wanted = [path for path in revision.files() if _is_wanted(revision.root / path, paths, settings.wanted)]
    policy = revision.within(settings.policy)
    contents = revision.read(wanted if policy is None else [*wanted, policy])
    document, files = maker(settings), {}
    for path in wanted:
        shown = _shown(revision.root / path)
        if path not in contents and shown in now:
            raise reject(
                "DP903", f"{shown!r} is a link in {revision.name!r}, to nothing that git has: it cannot be compared",
                help=["leave it out, or compare with a commit in which it is a file"],
            )  # fmt: skip
        if path in contents:
            source = decoded(contents[path], f"{revision.name}:{shown}")
            try:
                files[shown] = document(source)
            except Rejected:  # a template that could not be rendered then, either: as SQL it is refused
                files[shown] = Document(source)
    return files, None if policy is None else contents.get(policy)


def _is_wanted(path: Path, paths: Sequence[str], wanted: WantedFiles) -> bool:
    """Whether `dpsql check PATHS` would look at a file, if it were there now."""
    from dpsql.faces.check.documents.discovery import is_chosen

    for given in paths:
        if glob.has_magic(given) and not os.path.lexists(given):
            pattern = os.path.abspath(given)
            if fnmatch.fnmatch(str(path), pattern) or fnmatch.fnmatch(str(path), pattern.replace("**/", "")):
                return True
            continue
        whole = Path(os.path.realpath(given))
        if path == _called(given) or (path.is_relative_to(whole) and is_chosen(path, whole, wanted)):
            return True
    return False


def _policy_then(content: bytes | None, now: Policy, name: str) -> tuple[Policy, PolicyState]:
    """The policy that the older queries are checked against, and whether it is that commit's own."""
    from dpsql.policy.load import parse_policy

    if content is None:
        return now, "missing"
    try:
        return parse_policy(content.decode("utf-8-sig"), name, now.directory), "there"
    except (CannotOpen, UnicodeDecodeError):
        return now, "invalid"


def _shown(path: Path) -> str:
    return Path(os.path.relpath(_called(path), os.path.realpath("."))).as_posix()


def _called(path: str | Path) -> Path:
    """The whole path of a file. A link is called by its own name: what it leads to may be checked as well, or not."""
    whole = Path(os.path.abspath(path))
    return Path(os.path.realpath(whole.parent)) / whole.name
