"""URLs of databases on servers, `postgresql://…`, as policies and options name them; reading one needs no client.

*Claim.* A URL in which somebody has written a password is refused, and its text is in no message. *Why.* A password
stands between a colon and an `@`, or is a parameter, whose name may be written with `%`. `password_in` says yes to
every colon before an `@`, also where the client would see none because the password has a slash in it. Whoever connects
asks the client as well (`postgres_server.py`). *When it would be false.* If a client took passwords from yet another
part of a URL. *Tested by* tests/core/ledger/test_server_urls.py.
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
    "where there is none: write an @ behind the host as %40",
)


def is_server_url(text: str) -> bool:
    """Whether a text names a database on a server, not a file."""
    return text.startswith(_SCHEMES)


def password_in(url: str) -> bool:
    """Whether a URL may tell a password."""
    rest = url.partition("://")[2]
    if ":" in rest.rpartition("@")[0]:
        return True
    names = (unquote(part.partition("=")[0]) for part in rest.partition("?")[2].split("&"))
    return any(name.strip().lower() in SECRETS for name in names)
