"""What the command line and the configuration say together: the command line is stronger."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

from dpsql.core.privacy_loss import exact_epsilon
from dpsql.diagnostics.errors import reject
from dpsql.faces.check.documents.checkout import checkout_of, require_own
from dpsql.faces.check.documents.discovery import WantedFiles
from dpsql.faces.check.documents.document_sources import DocumentMaking, given_variables
from dpsql.faces.check.documents.parameter_values import given_values
from dpsql.faces.check.examine.cache import FOLDER
from dpsql.faces.check.examine.configuration import CheckOption, Configuration, declared
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examine_text import TextOptions
from dpsql.faces.check.examine.selection import selection, wrong_codes
from dpsql.service.privacy_settings import searched

_OPTIONS: Final = declared(Configuration)
Asked: TypeAlias = dict[str, Any]
"""Fields of Configuration as the command line gives them, its texts not yet read. None, or an empty list: not given."""


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What a run goes by. cache: the folder of the cache, None: none. jobs: None: as many as are worth it.

    root: of the checkout, if its configuration names the policy. draft: whether that may be a draft; nothing is cached.
    """

    policy: str
    options: TextOptions
    wanted: WantedFiles
    baseline: Path | None
    output_format: str
    strict: bool
    cache: Path | None
    jobs: int | None
    making: DocumentMaking = field(default_factory=DocumentMaking)
    root: Path | None = None
    draft: bool = False


def settle(asked: Asked, folder: Path) -> CheckSettings:
    """The settings for a run in this folder. Raises CannotOpen DP910 (configuration), Rejected DP903 (options)."""
    from dpsql.faces.check.examine.config import FoundConfiguration, find_configuration, read_configuration

    given = {name: value for name, value in asked.items() if _is_given(_OPTIONS[name], value)}
    if "config" in given:
        found = read_configuration(Path(given["config"]))
    elif "no_config" in given:
        found = FoundConfiguration(Configuration(), folder)
    else:
        found = find_configuration(folder)
    root, own = found.folder, checkout_of(found.folder) or found.folder
    filed = _placed(found.values, root, folder)
    if filed.policy is None and "policy" not in given and (named := os.environ.get("DPSQL_POLICY")):
        given["policy"] = named
    policy = given.get("policy") or filed.policy
    if policy is None:
        raise reject(
            "DP903", "no policy was given",
            help=["name it with  --policy FILE,  in DPSQL_POLICY, or write  policy = \"FILE\"  into dpsql.toml"],
        )  # fmt: skip
    for name in ("baseline", "dbt"):
        if name not in given and getattr(filed, name) is not None:
            require_own(os.path.join(folder, getattr(filed, name)), own, getattr(filed, name))
    for macros in filed.template_macros:
        require_own(os.path.join(folder, macros), own, macros)
    said = _together(filed, given)
    # Without a configuration the current folder may be anybody's: nothing is left there unless it is asked for.
    cache = said.cache_dir or (None if found.file is None else str(root / FOLDER))
    caching = "cache" not in given and not said.draft and (filed.cache or "cache_dir" in given)
    return CheckSettings(
        policy,
        TextOptions(
            said.dialect or "duckdb",
            selection(said.select, said.ignore, said.per_file_ignores, str(root)),
            EpsilonLimits(said.max_epsilon, said.max_epsilon_per_file),
            said.parameters,
            searched(said.limits or "auto"),
        ),
        WantedFiles(str(root), tuple(said.include) or None, tuple(said.exclude), said.gitignore, said.force_exclude),
        None if said.baseline is None else Path(said.baseline),
        said.output_format or "full",
        said.strict,
        Path(cache) if cache is not None and caching else None,
        said.jobs,
        DocumentMaking(
            said.dbt,
            said.dbt_tables,
            said.dialect,
            said.templater or "none",
            said.templates,
            tuple(said.template_macros),
        ),
        None if "policy" in given else own,
        said.draft,
    )


def _is_given(option: CheckOption, value: Any) -> bool:
    """Whether the command line says something. An empty text leaves it to the file, save where a limit was to stand."""
    return value not in (None, (), [], option.default) and (value != "" or not option.key or option.kind == "amount")


def _placed(values: Configuration, root: Path, folder: Path) -> Configuration:
    """What a file says, its paths as somebody in `folder` would write them."""
    placed: dict[str, Any] = {"template_macros": [str(root / path) for path in values.template_macros]}
    for name, option in _OPTIONS.items():
        if option.kind == "path" and (path := getattr(values, name)) is not None:
            placed[name] = _shown(root / path, folder)
    return replace(values, **placed)


def _together(filed: Configuration, given: Mapping[str, Any]) -> Configuration:
    """What is given, and otherwise what a file says; or both."""
    said = {}
    for name, value in given.items():
        option = _OPTIONS[name]
        said[name] = _READ[option.kind](option.flag, value) if option.kind in _READ else value
        if option.adds:
            before = getattr(filed, name)
            said[name] = {**before, **said[name]} if isinstance(before, Mapping) else [*before, *said[name]]
    return replace(filed, **said)


def _codes(option: str, given: Sequence[str]) -> list[str]:
    codes = [code.strip() for text in given for code in text.split(",") if code.strip()]
    wrong = wrong_codes(codes, option == "--ignore")
    if wrong is not None:
        raise reject("DP903", f"{option}: {wrong}", help=["e.g.  --ignore DP5,DP301"])
    return codes


def _amount(option: str, given: str) -> Fraction:
    try:
        return exact_epsilon(given, option)
    except ValueError as error:
        raise reject("DP903", str(error), help=[f"e.g.  {option} 0.5"]) from None


_READ: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "codes": _codes,
    "ignored": _codes,
    "amount": _amount,
    "variables": lambda _, given: given_variables(given),
    "parameters": lambda _, given: given_values(given),
}
"""Kinds of options that are more than the texts of the command line: from an option and its texts to its value."""


def _shown(path: Path, folder: Path) -> str:
    """A path as somebody in `folder` would write it."""
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # another drive
        return str(path)
