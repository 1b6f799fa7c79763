"""A policy in the fields of OpenDP's registry of deployments (registry.opendp.org), its second tier of transparency.

What neither the policy nor the program knows stands there as null: who publishes what, for whom and since when.
"""

from __future__ import annotations

import json
from typing import Any, Final

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.units import RowUnit
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.report import sections
from dpsql.policy.tools.assumptions import promises
from dpsql.policy.tools.decisions import undecided

_FLAVOURS: Final = {"pure_dp": "Pure DP", "approx_dp": "Approximate DP", "zcdp": "Zero-Concentrated DP"}
_NEIGHBOURS: Final = {
    "add_remove": "databases with and without the unit are neighbours",
    "replace_one": "databases in which the unit is replaced are neighbours",
}


def registry(policy: Policy, version: str) -> str:
    """JSON, indented."""
    totals = policy.caps_for().total
    units = {u.name: sections.one_of(u) for u in policy.units.values() if u.tables}
    public = [t.name for t in policy.tables.values() if t.public]
    deployment: dict[str, Any] = {
        "name": policy.name,
        "data_curator": None,
        "description": None,
        "intended_use": None,
        "data_product_type": "Query answers",
        "publication_date": None,
        "data_product_region": None,
        "data_product_sector": None,
        "dp_flavor": {
            "name": _FLAVOURS[policy.privacy.accountant],
            "data_domain": f"tables: {', '.join(policy.tables)}",
            "unprotected_quantities": f"public tables: {', '.join(public) or 'none'}; bounds, domains and limits of the"
            " policy; the texts of queries",
        },
        "privacy_loss": {
            "privacy_unit": ", ".join(units.values()),
            "privacy_unit_description": "; ".join(_described(policy, name) for name in units),
            "privacy_parameters": _of_units({name: _parameters(loss) for name, loss in totals.items()}),
        },
        "model": {
            "model_name": "Central",
            "is_many_release": True,
            "is_interactive": True,
            "is_dynamic": any(t.grows for t in policy.tables.values()),
        },
        "accounting": {
            "composition": "each answer is charged to a ledger before data are read; what exceeds the total is refused",
            "post_processing": "arithmetic, ordering and HAVING on noisy numbers alone",
        },
        "implementation": {
            "mechanisms": "discrete Laplace and discrete Gaussian noise on integers; thresholds for groups without a"
            f" public list; dpsql {version}",
            "promises_that_nothing_enforces": [p.claim for p in promises(policy)],
        },
        "additional_information": f"policy {policy.hash[:16]}",
    }
    status = "Draft: nobody is answered under this policy" if undecided(policy) else "Draft"
    told = {"status": status, "registry_authors": [], "tier": 2, "deployment": deployment}
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def _described(policy: Policy, unit: str) -> str:
    tables = [t for t in policy.tables.values() if not t.public and t.unit == unit]
    rows = [t.protection.rows for t in tables if isinstance(t.protection, RowUnit)]
    what = f"{max(rows)} row of {tables[0].name}" if rows else f"all rows of one {unit}"
    return f"{what}; {_NEIGHBOURS[policy.units[unit].neighbours]}"


def _parameters(loss: PrivacyLoss) -> dict[str, float]:
    """What all answers together may lose."""
    named = {"epsilon": loss.epsilon, "delta": loss.delta, "rho": loss.rho}
    return {name: float(amount) for name, amount in named.items() if amount}


def _of_units(parameters: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Of the only unit; of several by their names."""
    return {**next(iter(parameters.values()))} if len(parameters) == 1 else {**parameters}
