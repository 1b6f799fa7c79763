"""Policies as people write them: read from a file, a text or a mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsql.core.policy import policy as model
from dpsql.core.policy.positions import Places
from dpsql.diagnostics.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True, eq=False)
class Policy(model.Policy):
    """A policy and the ways to make one. What it declares: `core/policy/policy.py`."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, directory: str | os.PathLike[str] | None = None) -> Policy:
        """Build a policy in code: the mapping has the form of the file, and mistakes are told in the same words.

        Floats mean their shortest decimal text (0.2 is 1/5); dates may be `datetime.date`.
        directory: what relative paths are relative to; the current folder if None.
        Raises CannotOpen (DP003) with every mistake.

        >>> policy = dpsql.Policy.from_dict({
        ...     "version": 1,
        ...     "name": "shop",
        ...     "tables": {
        ...         "orders": {
        ...             "unit": {"column": "customer"},
        ...             "max_rows_per_unit": 20,
        ...             "columns": {
        ...                 "customer": {"type": "bigint"},
        ...                 "amount": {"type": "double", "bounds": [0, 100]},
        ...             },
        ...         }
        ...     },
        ...     "budgets": {"total": {"epsilon": 3}},
        ... })
        >>> dpsql.check("SELECT SUM(amount) AS total FROM orders", policy)
        []
        >>> dpsql.Policy.from_dict({"version": 1, "name": "shop", "tables": {"orders": {"units": 1}}})
        Traceback (most recent call last):
        dpsql.diagnostics.errors.CannotOpen: error[DP003]: tables.orders: ...
        """
        return cls.model_validate(data, directory=directory)

    @classmethod
    def from_yaml(cls, text: str, *, directory: str | os.PathLike[str] | None = None) -> Policy:
        """Build a policy from the text of a file; see `from_dict`. Raises CannotOpen (DP002, DP003)."""
        from dpsql.policy.load import parse_policy

        return parse_policy(text, directory=directory)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file. Raises CannotOpen (DP001, DP002, DP003)."""
        from dpsql.policy.load import load_policy

        return load_policy(path)

    @classmethod
    def model_validate(cls, data: object, *, directory: str | os.PathLike[str] | None = None) -> Policy:
        """Build a policy from a mapping of the file's form; floats mean their shortest decimal text (0.2 is 1/5).

        Raises CannotOpen (DP003) with every mistake.
        """
        from dpsql.policy.resolve.policy import build

        return build(data, Places(), path=None, directory=None if directory is None else Path(directory))

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the policy leaves open and its users will wonder about (DP007, DP015); it is valid all the same."""
        from dpsql.policy.tools.unsaid import unsaid

        return unsaid(self)
