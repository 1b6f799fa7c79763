"""No bytes make a traceback: a good policy with anything done to it loads or is refused with a code and a place."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.audit import promises, protection
from dpsql.policy.load import load_policy, parse_policy
from dpsql.policy.models import Policy
from dpsql.policy.show import show_policy
from tests.unit.policy.policies import GOOD, SAMPLES, good

TEXTS = [GOOD, (SAMPLES / "clinic.yaml").read_text()]
PIECES = [
    "null",
    "{}",
    "[]",
    "-1",
    "1e999",
    "'",
    '"',
    ":",
    "- ",
    "\n",
    "\t",
    "&a",
    "*a",
    "!!str",
    "|",
    ">",
    "%",
    "0x1f",
    ".nan",
    "\u2028",
    "\ufeff",
    "{a: b}",
    "[[]]",
    "read_csv('x')",
    "visits(visit_id)",
    "2024-02-30",
    "true",
    "<<: *a",
    "\x00",
    "😀",
]


def settle(text: str) -> None:
    """Load or be refused; what loads can be shown and audited."""
    try:
        policy = parse_policy(text, "fuzz.yaml", SAMPLES)
    except CannotOpen as error:
        for d in error.diagnostics:
            assert d.code in ("DP001", "DP002", "DP003") and d.message and d.source is not None and d.span is not None
            assert d.source.position(d.span.start)[0] >= 1
        assert str(error)
        return
    assert show_policy(policy) and protection(policy) is not None and promises(policy) is not None
    assert Policy.model_validate(policy.document).hash == policy.hash


@given(st.data())
@settings(max_examples=150)
def test_spliced_text(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 30)))
        text = text[:start] + data.draw(st.sampled_from(PIECES) | st.text(max_size=8)) + text[end:]
    settle(text)


@given(st.data())
@settings(max_examples=100)
def test_moved_lines(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        i, j = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.integers(0, len(lines) - 1))
        lines[i], lines[j] = lines[j], data.draw(st.sampled_from(["", lines[i], "  " + lines[i], lines[i].strip()]))
    settle("\n".join(lines))


def places(value: Any, loc: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    if isinstance(value, dict):
        return [loc, *(p for k, v in value.items() for p in places(v, (*loc, k)))]
    if isinstance(value, list):
        return [loc, *(p for i, v in enumerate(value) for p in places(v, (*loc, i)))]
    return [loc]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["visits", "id", "assume"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["rows", "columns", "path", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.sampled_from(places(good().document)[1:]), JSON)
@settings(max_examples=200)
def test_exchanged_values(loc: tuple[Any, ...], value: Any) -> None:
    import copy

    document: Any = copy.deepcopy(dict(good().document))
    at = document
    for part in loc[:-1]:
        at = at[part]
    at[loc[-1]] = value
    try:
        policy = Policy.model_validate(document)
    except CannotOpen as error:
        assert {d.code for d in error.diagnostics} == {"DP003"} and str(error)
        return
    assert show_policy(policy)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")))
@settings(max_examples=100)
def test_any_bytes(raw: bytes) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "p.yaml"
        file.write_bytes(raw)
        try:
            load_policy(file)
        except CannotOpen as error:
            assert error.diagnostics and str(error)
