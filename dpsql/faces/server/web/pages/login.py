"""The page that asks for name and password, and those that say that something is not there."""

from __future__ import annotations

from typing import Final

from dpsql.faces.server.web.markup import h
from dpsql.faces.server.web.pages.page_frame import bare

BY_PROVIDER: Final = "/login/provider"
"""Where those go for whom an identity provider vouches."""


def login(role: str, message: str = "", has_provider: bool = False) -> bytes:
    """message: why the last try was not good."""
    what = (
        "See what your queries would cost, what you have spent, and ask."
        if role == "analyst"
        else "For custodians: accounts, refusals, sessions and the ledger."
    )
    return bare(
        role, "Sign in",
        h.form(
            h.p(what, class_="lead"),
            h.p(message, class_="wrong", role="alert") if message else None,
            h.label("Name", for_="name"),
            h.input(id="name", name="name", autocomplete="username", autocapitalize="none", spellcheck="false",
                    required=True, autofocus=True, maxlength="200"),
            h.label("Password", for_="password"),
            h.input(id="password", name="password", type="password", autocomplete="current-password", required=True,
                    maxlength="1000"),
            h.button("Sign in", type="submit", class_="main"),
            h.p(h.a("Sign in with your organization’s account", href=BY_PROVIDER)) if has_provider else None,
            method="post", action="/login", class_="card sign-in",
        ),
    )  # fmt: skip


def welcome(role: str) -> bytes:
    """Of somebody who has just come in."""
    return bare(role, "Signed in", h.p(h.a("To the first page", href="/"), class_="lead"))


def message(role: str, title: str, text: str) -> bytes:
    """One sentence, and the way back."""
    return bare(role, title, h.p(text, class_="lead"), h.p(h.a("To the first page", href="/")))
