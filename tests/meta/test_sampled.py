"""What a commit leaves out of a long test, another one runs."""

from __future__ import annotations

from tests.support.sampled import is_chosen


def chosen(seed: str, cases: int, n: int) -> list[int]:
    return [at for at in range(cases) if is_chosen(seed, "test_it", at, n)]


def test_a_commit_chooses_one_of_each_n_and_always_the_same() -> None:
    for seed in ("a", "b", "c"):
        assert [at // 4 for at in chosen(seed, 400, 4)] == list(range(100))
        assert chosen(seed, 400, 4) == chosen(seed, 400, 4)
    assert chosen("a", 400, 4) != chosen("b", 400, 4)


def test_every_case_has_its_commits() -> None:
    assert {at for seed in range(60) for at in chosen(str(seed), 40, 4)} == set(range(40))
