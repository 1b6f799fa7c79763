"""URLs of databases on servers, `postgresql://…`, as policies and options name them; reading one needs no client.

*Claim.* A URL in which the client would find a password is refused, and its text is in no message. *Why.* `password_in`
looks where libpq looks: behind the first colon before an `@` that comes before any slash, and in the parameters, whose
names may be written with `%`; where both could be meant, it says yes. Whoever connects asks the client as well
(`postgres_server.py`). *When it would be false.* If a client took passwords from yet another part of a URL. *Tested by*
tests/core/ledger/test_server_urls.py.
"""

from __future__ import annotations

from urllib.parse import unquote

_SCHEMES = ("postgresql://", "postgres://")
SECRETS = ("password", "sslpassword")
"""Parameters of a connection that are nobody else's business."""

PASSWORD = "the URL holds a password, which whoever reads the policy, a history or a list of processes would see"
PASSWORD_HELP = (
    "leave it out:  postgresql://NAME@HOST/DATABASE  and put it into ~/.pgpass, the variable PGPASSWORD, or a service "
    "file:  postgresql:///?service=NAME",
)


def is_server_url(text: str) -> bool:
    """Whether a text names a database on a server, not a file."""
    return text.startswith(_SCHEMES)


def password_in(url: str) -> bool:
    """Whether a URL may tell a password."""
    rest = url.partition("://")[2]
    before, at, _ = rest.partition("/")[0].partition("@")
    if at and ":" in before:
        return True
    names = (unquote(part.partition("=")[0]) for part in rest.partition("?")[2].split("&"))
    return any(name.strip().lower() in SECRETS for name in names)
