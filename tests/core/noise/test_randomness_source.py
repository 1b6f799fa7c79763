"""Where the randomness comes from: the kernel alone, never the same twice, in no other module."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpsql
from dpsql.core.noise import sampler as source
from dpsql.core.noise.sampler import choose, discrete_gaussian, discrete_laplace

WIDE = Fraction(1 << 50)  # two honest lists of 50 draws share a value with probability about 1e-12
ROOT = Path(dpsql.__file__).parent
SAMPLER = ROOT / "core" / "noise" / "sampler"


def laplace() -> list[int]:
    return list(discrete_laplace(WIDE, 50))


def gaussian() -> list[int]:
    return list(discrete_gaussian(WIDE**2, 50))


def cells() -> list[int]:
    return [choose([1 << 62], [0], Fraction(1))[1] for _ in range(50)]


Draws = Callable[[], list[int]]
each = pytest.mark.parametrize("draws", [laplace, gaussian, cells])


def shared(lists: list[list[int]]) -> int:
    """How many values occur more than once over all lists."""
    values = [v for one in lists for v in one]
    return len(values) - len(set(values))


def in_children(draw: Callable[[], list[int]], count: int) -> list[list[int]]:
    """What `draw` gives in this process before and after forking, and in each child."""
    results = [draw()]
    for _ in range(count):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writer, repr(draw()).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            results.append([int(v) for v in pipe.read().strip("[]").split(",")])
        os.waitpid(pid, 0)
    return [*results, draw()]


class Hoarding:
    """The twin: fetches a large block ahead and hands it out, as a buffered generator would."""

    def __init__(self) -> None:
        self.stock = os.urandom(1 << 20)
        self.at = 0

    def words(self, count: int, bits: int) -> np.ndarray:
        size = count * next(n for n in (1, 2, 4, 8) if bits <= 8 * n)
        self.at += size
        taken = np.frombuffer(self.stock[self.at - size : self.at], f"u{size // count}")
        return taken >> (8 * size // count - bits)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
quiet = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@forks
@quiet
@each
def test_parent_and_children_share_no_draw(draws: Draws) -> None:
    results = in_children(draws, 3)
    assert [len(one) for one in results] == [50] * 5
    assert shared(results) == 0


@forks
@quiet
@each
def test_a_buffer_would_be_found(draws: Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_KERNEL", Hoarding())
    assert shared(in_children(draws, 2)) >= 50


@each
def test_threads_share_no_draw(draws: Draws) -> None:
    results: list[list[int]] = []
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        mine = [draws() for _ in range(20)]
        results.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(one) for one in results] == [50] * 160
    assert shared(results) == 0


@each
def test_seeds_of_other_generators_have_no_influence(draws: Draws) -> None:
    seen = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        seen.append(draws())
    assert seen[0] != seen[1]


@each
def test_drawing_leaves_other_generators_alone(draws: Draws) -> None:
    random.seed(1)
    np.random.seed(1)
    before, numpy_before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index, union-attr]
    draws()
    assert random.getstate() == before
    assert np.random.get_state()[1].tolist() == numpy_before  # type: ignore[index, union-attr]


def sources_of_randomness(tree: ast.AST) -> list[str]:
    """Imports and attributes in a module that give random numbers."""
    modules = {"random", "secrets", "numpy.random"}
    names = {"urandom", "getrandom", "SystemRandom", "default_rng", "RandomState"}
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                found += [a.name for a in aliases if a.name in modules or a.name.startswith("numpy.random.")]
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                found += [module] if module in modules or module.startswith("numpy.random.") else []
                found += [a.name for a in aliases if f"{module}.{a.name}" in modules or a.name in names]
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                found.append("numpy.random")
            case ast.Attribute(attr=str(name)) if name in names:
                found.append(name)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "import numpy as np\nnp.random.laplace()",
        "from numpy import random",
        "import numpy.random",
        "from numpy.random import default_rng",
        "import secrets as s",
        "from os import urandom",
        "import os\nos.getrandom(3)",
        "def f():\n    from random import choice",
    ],
)
def test_the_search_finds_every_way_to_draw(text: str) -> None:
    assert sources_of_randomness(ast.parse(text))


@pytest.mark.parametrize("path", sorted(SAMPLER.glob("*.py")), ids=lambda p: p.name)
def test_no_seed_no_clock_and_no_float_in_the_sampler(path: Path) -> None:
    assert suspects(ast.parse(path.read_text("utf-8"))) == set()


def suspects(tree: ast.AST) -> set[str]:
    """Names, constants and operators that bring in a seed, a clock or a floating-point number."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=str(name)) | ast.arg(arg=str(name)) | ast.Attribute(attr=str(name)):
                if "seed" in name.lower() or name.startswith("float") or name in ("time", "exp", "log", "sqrt"):
                    found.add(name)
            case ast.Constant(value=float()):
                found.add(str(node.value))
    return found


@pytest.mark.parametrize(
    "text", ["x = 0.5", "def f(seed): pass", "np.exp(x)", "float(x)", "np.float64", "math.sqrt(2)", "time.time()"]
)
def test_suspects_are_found(text: str) -> None:
    assert suspects(ast.parse(text))


def test_pricing_loads_no_numpy() -> None:
    """Planning and `dpsql check` price noise without drawing any: they should not pay for loading the sampler."""
    program = (
        "import sys; from fractions import Fraction as F; from dpsql.core.noise.mechanisms import *\n"
        "m = DiscreteLaplace.calibrate(F(1), F(1, 2)); m.half_width(F(19, 20)); m.variance()\n"
        "KeyThreshold.calibrate(m, 1, 1, F(1, 100)).delta\n"
        "assert 'numpy' not in sys.modules\n"
        "m.add_noise([1])\n"
        "assert 'numpy' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT.parent, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
