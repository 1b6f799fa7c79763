"""A statement's settings in the terms of a query, with what its login says where the statement says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dpsql.faces.server.statements import Login, StatementSettings
from dpsql.service.privacy_settings import Asked

DIALECT: Final = "duckdb"
"""What statements are read as: the server answers what the other faces answer."""


def asked(settings: StatementSettings) -> Asked:
    """As a query takes them."""
    return {
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "rho": settings.rho,
        "allow_dearer": settings.allow_dearer,
        "coverage": settings.coverage,
        "consistent_totals": settings.consistent_totals,
        "limits": settings.limits,
        "anyway": settings.anyway,
    }


def with_defaults(settings: StatementSettings, login: Login) -> StatementSettings:
    """With the login's ε (or ρ) and δ where none are given."""
    own = login.defaults
    if settings.epsilon is None and settings.rho is None:
        settings = replace(settings, epsilon=own.epsilon, rho=own.rho)
    return settings if settings.delta is not None else replace(settings, delta=own.delta)
