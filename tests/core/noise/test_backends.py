"""Which backend draws, how scales become doubles, and what happens where OpenDP is missing."""

from __future__ import annotations

import builtins
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.noise import backends
from dpsql.core.noise.backends import EXACT, OpenDPBackend, at_least, backend, root_at_least
from dpsql.diagnostics.errors import Rejected

positive = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=1 << 55),
    st.fractions(min_value=Fraction(1, 10**400), max_value=1),
    st.integers(1, 1 << 60).map(Fraction),
    st.floats(1e-300, 2.0**55).map(Fraction),
)


@given(positive)
def test_scales_become_the_next_double_upwards(x: Fraction) -> None:
    found = at_least(x)
    assert Fraction(found) >= x
    assert Fraction(math.nextafter(found, 0)) < x


@given(positive)
def test_standard_deviations_are_rounded_up(x: Fraction) -> None:
    found = root_at_least(x)
    assert Fraction(found) ** 2 >= x
    two_less = math.nextafter(math.nextafter(found, 0), 0)
    assert x < Fraction(1, 10**300) or Fraction(two_less) ** 2 < x


def test_rounding_to_the_nearest_would_draw_too_little() -> None:
    """The twin: for about half of all rationals the nearest double is below."""
    thirds = [Fraction(n, 3) for n in range(1, 1000)]
    assert any(Fraction(float(x)) < x for x in thirds)
    assert any(Fraction(math.sqrt(x)) ** 2 < x for x in thirds)


class Recorder:
    """Stands for opendp.prelude and keeps what it is asked for."""

    def __init__(self) -> None:
        self.scales: list[float] = []
        self.m = self

    def vector_domain(self, *_: Any, **__: Any) -> None: ...

    atom_domain = l1_distance = l2_distance = vector_domain

    def make_laplace(self, domain: Any, metric: Any, scale: float) -> Any:
        self.scales.append(scale)
        return lambda zeros: zeros

    make_gaussian = make_laplace


def test_opendp_gets_no_value_and_no_scale_below_the_priced_one(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    monkeypatch.setattr(backends, "_opendp", lambda: recorder)
    assert OpenDPBackend().laplace(Fraction(1, 3), 2) == [0, 0]
    assert OpenDPBackend().gaussian(Fraction(2), 2) == [0, 0]
    laplace, gaussian = recorder.scales
    assert Fraction(laplace) >= Fraction(1, 3) and laplace == pytest.approx(1 / 3, rel=1e-15)
    assert Fraction(gaussian) ** 2 >= 2 and gaussian == pytest.approx(math.sqrt(2), rel=1e-15)


def test_the_default_is_our_own() -> None:
    assert backend("exact") is EXACT
    assert EXACT.name == "exact"
    assert OpenDPBackend().name == "opendp"


@pytest.fixture
def without_opendp(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the package had never been installed."""
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "opendp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == "opendp"]:
        monkeypatch.delitem(sys.modules, name)
    backends._opendp.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    yield
    backends._opendp.cache_clear()


@pytest.mark.usefixtures("without_opendp")
def test_a_missing_opendp_is_refused_with_its_repair() -> None:
    with pytest.raises(Rejected) as refused:
        backend("opendp")
    (found,) = refused.value.diagnostics
    assert found.code == "DP905"
    assert "pip install 'dpsql[opendp]'" in found.help[0]
    assert refused.value.__cause__ is None


def test_opendp_is_not_loaded_for_our_own_noise() -> None:
    import subprocess

    program = (
        "import sys\nfrom fractions import Fraction\nfrom dpsql.core.noise.backends import backend\n"
        "assert len(backend('exact').gaussian(Fraction(4), 3)) == 3\n"
        "assert not any(name.split('.')[0] == 'opendp' for name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
