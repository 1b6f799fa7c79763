"""dpsql.toml and [tool.dpsql]: where it is looked for, every key, and mistakes with their places."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest

from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.faces.check.examine.check_settings import Asked, settle
from dpsql.faces.check.examine.config import KEYS, find_configuration, read_configuration
from dpsql.faces.check.examine.configuration import Configuration, OutputFormat, declared
from dpsql.faces.check.report.formats import FORMATS

EVERY_KEY = """
policy = "clinic.yaml"
dialect = "postgres"
limits = "search"
include = ["queries/*.sql"]
exclude = ["old"]
gitignore = false
select = ["DP3", "DP412"]
ignore = ["DP5"]
max-epsilon = 0.1
max_epsilon_per_file = 1
baseline = "known.json"
output-format = "sarif"
strict = true
cache = false
cache-dir = "cache"
jobs = 2

[per-file-ignores]
"legacy/*" = ["DP301"]
"""


def test_every_key(tmp_path: Path) -> None:
    (tmp_path / "dpsql.toml").write_text(EVERY_KEY)
    found = find_configuration(tmp_path)
    values = found.values
    assert found.folder == tmp_path and found.file == tmp_path / "dpsql.toml"
    assert values.max_epsilon == Fraction(1, 10) and values.max_epsilon_per_file == 1  # exactly
    said = [name for name, key in KEYS.items() if getattr(values, name) != key.default]
    assert len(said) == len([line for line in EVERY_KEY.splitlines() if line[:1].isalpha()]) + 1
    settings = settle(Asked(), tmp_path)
    assert settings.policy == "clinic.yaml" and str(settings.baseline) == "known.json"
    assert (settings.output_format, settings.strict, settings.jobs, settings.cache) == ("sarif", True, 2, None)
    assert (
        settings.options.search
        and settings.options.dialect == "postgres"
        and settings.options.limits.query == Fraction(1, 10)
    )
    assert settings.wanted.include == ("queries/*.sql",) and settings.wanted.exclude == ("old",)
    assert not settings.wanted.gitignore and settings.wanted.root == str(tmp_path)
    selection = settings.options.selection
    assert selection.select == ("DP3", "DP412") and selection.ignore == ("DP5",)
    assert selection.per_file == (("legacy/*", ("DP301",)),)


def test_the_command_line_is_stronger(tmp_path: Path) -> None:
    (tmp_path / "dpsql.toml").write_text(EVERY_KEY)
    asked = Asked(
        policy="p.yaml", dialect="duckdb", include=["*.q"], exclude=["new"], select=["DP5,DP301"], ignore=["DP302"],
        max_epsilon="2", max_epsilon_per_file="3", baseline="b.json", output_format="json", jobs=1, cache_dir="here",
    )  # fmt: skip
    settings = settle(asked, tmp_path)
    assert (settings.policy, str(settings.baseline), settings.output_format) == ("p.yaml", "b.json", "json")
    assert settings.wanted.include == ("*.q",) and settings.wanted.exclude == ("old", "new")  # added
    assert settings.options.selection.select == ("DP5", "DP301")
    assert settings.options.selection.ignore == ("DP5", "DP302")  # added
    assert (settings.options.limits.query, settings.options.limits.file) == (2, 3)
    assert (settings.options.dialect, settings.jobs, settings.cache) == ("duckdb", 1, Path("here"))


def test_the_nearest_folder_upwards_counts(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find_configuration(deep).values == Configuration()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.dpsql]\npolicy = "top.yaml"\n')
    assert settle(Asked(), deep).policy == "../../top.yaml"
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "without a table"\n')
    assert settle(Asked(), deep).policy == "../../top.yaml"
    (tmp_path / "dpsql.toml").write_text('policy = "own.yaml"\n')  # before pyproject.toml of the same folder
    assert settle(Asked(), deep).policy == "../../own.yaml"
    (deep / "other.toml").write_text('policy = "named.yaml"\n')
    assert settle(Asked(config=str(deep / "other.toml")), deep).policy == "named.yaml"
    assert settle(Asked(no_config=True, policy="p"), deep).policy == "p"


def test_where_the_cache_lies(tmp_path: Path) -> None:
    assert settle(Asked(policy="p"), tmp_path).cache is None  # nothing is left in a folder that is nobody's
    (tmp_path / "dpsql.toml").write_text('policy = "p.yaml"\n')
    assert settle(Asked(), tmp_path).cache == tmp_path / ".dpsql_cache"
    assert settle(Asked(cache=False), tmp_path).cache is None


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("policy = 1\n", "policy", "string"),
        ("\n\nmax-epsilom = 1\n", "max-epsilom", "unknown key 'max-epsilom'"),
        ("max-epsilon = 0\n", "max-epsilon", "above 0"),
        ("max-epsilon = nan\n", "max-epsilon", "must be a finite number"),
        ("max-epsilon = true\n", "max-epsilon", "must be a number"),
        ("ignore = ['DP201']\n", "ignore", "cannot be ignored"),
        ("ignore = ['DP']\n", "ignore", "cannot be ignored"),
        ("select = ['E501']\n", "select", "no code"),
        ("[per-file-ignores]\n'a' = ['DP301']\n'b/*' = ['DP2']\n", "'b/*'", "cannot be ignored"),
        ("per-file-ignores = {'b/*' = ['DP2']}\n", "per-file-ignores", "cannot be ignored"),
        ("strict = 'yes'\n", "strict", "boolean"),
        ("jobs = 0\n", "jobs", "greater than or equal to 1"),
        ("output-format = 'pdf'\n", "output-format", "'sarif'"),
        ("include = '*.sql'\n", "include", "list"),
        ("max-epsilon = 1\nmax_epsilon = 2\n", "max_epsilon", "given twice"),
        ("policy = 'a'\npolicy = 'b'\n", None, "not TOML"),
        ("policy = \n", None, "not TOML"),
        ("[tool.dpsql]\npolicy = 'a'\n", "tool.dpsql", "unknown key 'tool'"),
    ],
)
def test_mistakes(text: str, line: str | None, said: str, tmp_path: Path) -> None:
    for file, written in ((tmp_path / "dpsql.toml", text), (tmp_path / "pyproject.toml", f"[tool.dpsql]\n{text}")):
        if "[" in text.partition("=")[0] and file.name == "pyproject.toml":
            continue  # its headings would need another prefix
        file.write_bytes(written.replace("\n", "\r\n").encode())
        with pytest.raises(CannotOpen) as refused:
            read_configuration(file)
        (found,) = refused.value.diagnostics
        assert found.code == "DP910" and said in found.message, found.message
        assert found.source is not None and found.source.name.endswith(file.name) and found.span is not None
        if line is not None:
            assert found.source.text[found.span.start : found.span.end] == line


def test_every_mistake_is_told(tmp_path: Path) -> None:
    (tmp_path / "dpsql.toml").write_text("polici = 'x'\njobs = 0\n")
    with pytest.raises(CannotOpen) as refused:
        find_configuration(tmp_path)
    assert len(refused.value.diagnostics) == 2


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"[tool.other]\nx = 1\n", b"[tool]\ndpsql = 3\n"])
def test_files_that_hold_none(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CannotOpen, match="DP910"):
        read_configuration(file)


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"policy": "p", "max_epsilon": "-1"}, {"policy": "p", "max_epsilon_per_file": "much"},
        {"policy": "p", "max_epsilon": ""}, {"policy": "p", "ignore": ["DP5,DP2"]}, {"policy": "p", "select": ["all"]},
    ],
)  # fmt: skip
def test_options_that_are_wrong(asked: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="DP903"):
        settle(Asked(**asked), tmp_path)


def test_an_empty_text_of_the_command_line_leaves_it_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "dpsql.toml").write_text(EVERY_KEY)
    nothing = Asked(policy="", dialect="", baseline="", cache_dir="", select=[], jobs=None, strict=False, cache=True)
    assert settle(nothing, tmp_path) == settle(Asked(), tmp_path)
    with pytest.raises(CannotOpen, match="DP910"):
        settle(Asked(policy="p", config=""), tmp_path)


def test_the_formats_are_those_that_can_be_asked_for() -> None:
    assert list(get_args(OutputFormat)) == list(FORMATS)


def test_every_option_of_the_command_line_is_settled_like_its_key(tmp_path: Path) -> None:
    """Each is given a value of its kind, once as an option and once in the file, of which a field is made."""
    texts: dict[str, tuple[Any, Any]] = {
        "text": ("postgres", "'postgres'"), "path": ("p", "'p'"), "texts": (["p"], "['p']"), "count": (2, "2"),
        "codes": (["DP3,DP412"], "['DP3', 'DP412']"), "ignored": (["DP5"], "['DP5']"), "amount": ("0.5", "0.5"),
        "parameters": (["a=1"], "{a = 1}"), "variables": (["a=1"], "{a = '1'}"),
    }  # fmt: skip
    tried = 0
    for name, option in declared(Configuration).items():
        if not option.flag or not option.key:
            continue
        if option.kind == "switch":
            given, written = not option.default, str(not option.default).lower()
        elif option.kind == "choice":
            given = get_args(get_args(option.type)[0])[-1]
            written = repr(given)
        else:
            given, written = texts[option.kind]
        (tmp_path / "dpsql.toml").write_text("" if name == "policy" else 'policy = "p.yaml"\n')
        asked = replace(settle({name: given}, tmp_path), root=None)
        nothing = None if name == "policy" else replace(settle({}, tmp_path), root=None)
        with (tmp_path / "dpsql.toml").open("a") as file:
            file.write(f"{name} = {written}\n")
        filed = replace(settle({}, tmp_path), root=None)
        if name == "template_macros":  # the file's are told from wherever the check runs
            filed = replace(filed, making=replace(filed.making, macros=("p",)))
        assert asked == filed != nothing, name
        tried += 1
    assert tried > 15
