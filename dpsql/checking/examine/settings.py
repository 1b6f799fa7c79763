"""What the command line and the configuration say together: the command line is stronger."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from dpsql.checking.documents.checkout import checkout_of, require_own
from dpsql.checking.documents.discovery import Wanted
from dpsql.checking.documents.sources import Making, variables_of
from dpsql.checking.documents.values import given_values
from dpsql.checking.examine.cache import FOLDER
from dpsql.checking.examine.limits import Limits
from dpsql.checking.examine.selection import Selection, selection, wrong_codes
from dpsql.checking.examine.statements import Options
from dpsql.core.privacy_loss import exact_epsilon
from dpsql.diagnostics.errors import reject


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command line as they were given; None or empty: not given."""

    policy: str | None = None
    dialect: str | None = None
    config: str | None = None
    no_config: bool = False
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    gitignore: bool = True
    force_exclude: bool = False
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    max_epsilon: str | None = None
    max_epsilon_per_file: str | None = None
    baseline: str | None = None
    output_format: str | None = None
    strict: bool = False
    cache: bool = True
    cache_dir: str | None = None
    jobs: int | None = None
    dbt: str | None = None
    templater: str | None = None
    template_vars: Sequence[str] = ()
    template_macros: Sequence[str] = ()
    parameters: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run goes by. cache: the folder of the cache, None: none. jobs: None: as many as are worth it.

    root: of the checkout, if its configuration names the policy.
    """

    policy: str
    options: Options
    wanted: Wanted
    baseline: Path | None
    output_format: str
    strict: bool
    cache: Path | None
    jobs: int | None
    making: Making = field(default_factory=Making)
    root: Path | None = None


def settle(asked: Asked, folder: Path) -> Settings:
    """The settings for a run in this folder. Raises CannotOpen DP910 (configuration), Rejected DP903 (options)."""
    from dpsql.checking.examine.config import Configuration, Found, find_configuration, read_configuration

    if asked.config is not None:
        found = read_configuration(Path(asked.config))
    elif asked.no_config:
        found = Found(values=Configuration(), folder=folder)
    else:
        found = find_configuration(folder)
    values, root = found.values, found.folder

    def beside(path: str | None) -> str | None:
        return None if path is None else _shown(root / path, folder)

    policy = asked.policy or beside(values.policy)
    if policy is None:
        raise reject(
            "DP903", "no policy was given",
            help=["name it with  --policy FILE,  or write  policy = \"FILE\"  into dpsql.toml"],
        )  # fmt: skip
    own = checkout_of(root) or root
    macros = tuple(str(root / path) for path in values.template_macros)
    for named in (
        None if asked.baseline else beside(values.baseline),
        None if asked.dbt else beside(values.dbt),
        *macros,
    ):
        if named is not None:
            require_own(os.path.join(folder, named), own, named)
    baseline = asked.baseline or beside(values.baseline)
    # Without a configuration the current folder may be anybody's: nothing is left there unless it is asked for.
    cache = asked.cache_dir or beside(values.cache_dir) or (None if found.file is None else str(root / FOLDER))
    include = asked.include or values.include
    return Settings(
        policy,
        Options(
            asked.dialect or values.dialect or "duckdb",
            _selection(asked, values.select, values.ignore, values.per_file_ignores, root),
            Limits(
                _amount("--max-epsilon", asked.max_epsilon) or values.max_epsilon,
                _amount("--max-epsilon-per-file", asked.max_epsilon_per_file) or values.max_epsilon_per_file,
            ),
            {**values.parameters, **given_values(asked.parameters)},
        ),
        Wanted(
            str(root),
            tuple(include) if include else None,
            (*values.exclude, *asked.exclude),
            asked.gitignore and values.gitignore,
            asked.force_exclude,
        ),
        None if baseline is None else Path(baseline),
        asked.output_format or values.output_format or "full",
        asked.strict or values.strict,
        Path(cache) if cache is not None and asked.cache and (values.cache or asked.cache_dir is not None) else None,
        asked.jobs or values.jobs,
        Making(
            asked.dbt or beside(values.dbt),
            values.dbt_tables,
            asked.dialect or values.dialect,
            asked.templater or values.templater or "none",
            variables_of(values.templates, asked.template_vars),
            (*macros, *asked.template_macros),
        ),
        None if asked.policy else own,
    )


def _selection(
    asked: Asked, select: Sequence[str], ignore: Sequence[str], per_file: dict[str, list[str]], root: Path
) -> Selection:
    selected, ignored = _codes("--select", asked.select), _codes("--ignore", asked.ignore)
    return selection(selected or select, [*ignore, *ignored], per_file, str(root))


def _codes(option: str, given: Sequence[str]) -> list[str]:
    codes = [code.strip() for text in given for code in text.split(",") if code.strip()]
    wrong = wrong_codes(codes, option == "--ignore")
    if wrong is not None:
        raise reject("DP903", f"{option}: {wrong}", help=["e.g.  --ignore DP5,DP301"])
    return codes


def _amount(option: str, given: str | None) -> Fraction | None:
    if given is None:
        return None
    try:
        return exact_epsilon(given, option)
    except ValueError as error:
        raise reject("DP903", str(error), help=[f"e.g.  {option} 0.5"]) from None


def _shown(path: Path, folder: Path) -> str:
    """A path as somebody in `folder` would write it."""
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # another drive
        return str(path)
