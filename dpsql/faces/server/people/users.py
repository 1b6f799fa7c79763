"""The file of users: who may log in, with what secret, whose account is charged, and what each may ask.

    users:
      ana:
        secret: SCRAM-SHA-256$4096:…    # `dpsql user add ana` prints it; may be left out beside a certificate
        certificate: ana@example.org    # common name of a client's certificate; left out: none is needed
        subject: 8d5f…                  # what the identity provider calls her; left out: it does not let her in
        account: ana                    # of the policy's budgets; left out: the name
        role: analyst                   # or custodian
        kind: person                    # or bi, for a tool that says nothing of ε
        defaults: {epsilon: 0.1, delta: 1e-9, intervals: true}
        ceilings: {per_query: {epsilon: 0.5}, per_hour: {epsilon: 1}, per_day: {epsilon: 2}, statements: 100,
          least_epsilon: 0.01}
        may: [summaries, counters]      # CREATE and DROP of these; periods: CLOSE DP PERIODS; left out: nothing
        databases: [clinic]             # of the server, and what is made up of them; left out: its only one

    oidc: {issuer: https://login.example.org/clinic, client: dpsql, secret_file: oidc-secret, claim: sub}

No password stands in it. It is read when the server starts, and on SIGHUP.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, ValidationError

from dpsql.core.privacy_loss import show_spent
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.statements import Ceilings, Login, StatementSettings
from dpsql.faces.server.wire.scram import Secret, read_secret, secret_of_nobody
from dpsql.policy.file.scalars import (
    MESSAGE,
    Count,
    Flag,
    Name,
    Positive,
    Probability,
    Text,
    one_of,
    usable_name,
    wrong,
)
from dpsql.policy.file.yaml_text import MAX_CHARACTERS, read_yaml
from dpsql.policy.issues import Issue, did_you_mean, dotted, listed, shown

if TYPE_CHECKING:
    from dpsql.core.policy.positions import Loc, Places

RIGHTS: Final = ("summaries", "counters", "periods")
"""What a login may be allowed besides queries."""
_ADD: Final = "dpsql user add NAME  prints the lines of one"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _secret(value: object) -> Secret:
    found = read_secret(value) if isinstance(value, str) else None
    if found is None:  # what stands there may be a password: it is not shown
        raise wrong("is no secret as PostgreSQL writes it (SCRAM-SHA-256$4096:…); no password stands here")
    return found


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(name, str) for name in value):
        raise wrong("must be a list of databases of the server, by their names: [clinic]")
    return tuple(value)


def _rights(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or any(right not in RIGHTS for right in value):
        raise wrong(f"must be a list of what the login may do besides queries: [{', '.join(RIGHTS)}]")
    return tuple(value)


class _Loss(_File):
    epsilon: Positive


class _Defaults(_File):
    epsilon: Positive | None = None
    delta: Probability | None = None
    rho: Positive | None = None
    allow_dearer: Flag | None = None
    intervals: Flag = False


class _Ceilings(_File):
    per_query: _Loss | None = None
    per_hour: _Loss | None = None
    per_day: _Loss | None = None
    statements: Count | None = None
    least_epsilon: Positive | None = None


class _User(_File):
    secret: Annotated[Secret | None, PlainValidator(_secret)] = None
    certificate: Text | None = None
    subject: Text | None = None
    account: Name | None = None
    role: Annotated[Literal["analyst", "custodian"], one_of("analyst", "custodian")] = "analyst"
    kind: Annotated[Literal["person", "bi"], one_of("person", "bi")] = "person"
    defaults: _Defaults = _Defaults()
    ceilings: _Ceilings = _Ceilings()
    may: Annotated[tuple[str, ...], BeforeValidator(_rights)] = ()
    databases: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()


class _Oidc(_File):
    issuer: Text
    client: Text
    secret_file: Text | None = None
    claim: Text = "sub"


class _Users(_File):
    users: dict[str, _User]
    oidc: _Oidc | None = None


_KEYS: Final[dict[str, type[BaseModel]]] = {
    "defaults": _Defaults, "ceilings": _Ceilings, "per_query": _Loss, "per_hour": _Loss, "per_day": _Loss,
    "oidc": _Oidc,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class User:
    """One who may log in. login: what every session of his begins with, but for the address.

    secret, certificate: what he has to show, both where both are given; of a certificate its common name. subject: what
    the identity provider says of him, which lets him into a console.
    """

    secret: Secret | None
    login: Login
    certificate: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """Who vouches for people by OpenID Connect. client: what it knows this server as. claim: whose value is a user's
    `subject`. secret: of the client; None for one that has none."""

    issuer: str
    client: str
    claim: str
    secret: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class Users:
    """All who may log in, by name: others, once the file was read anew (`faces/server/reload.py`). provider: who
    vouches for those that have a subject."""

    by_name: Mapping[str, User]
    provider: Provider | None = None

    def secret_of(self, name: str) -> Secret:
        """The secret to ask for. Of a name that nobody has, or that has none, one that no password fits, the same on
        each call but for what no client sees: that a name is unknown is not told."""
        found = self.by_name.get(name)
        if found is not None and found.secret is not None:
            return found.secret
        first = next((user.secret for user in self.by_name.values() if user.secret is not None), None)
        key = hashlib.sha256(b"nobody" + (b"" if first is None else first.server_key)).digest()
        return secret_of_nobody(name, first, key)

    def by_certificate(self, name: str, certificate: str | None) -> Login | None:
        """Who this is, if his certificate is enough, and it is this one, by its common name."""
        found = self.by_name.get(name)
        enough = found is not None and found.secret is None and found.certificate is not None
        return found.login if found is not None and enough and found.certificate == certificate else None

    def by_subject(self, subject: str, role: str) -> Login | None:
        """Who somebody is that the identity provider vouches for; None for whom the file does not list."""
        known = (user.login for user in self.by_name.values() if user.subject == subject)
        return next((login for login in known if login.role == role), None)

    def login(self, name: str, certificate: str | None = None) -> Login | None:
        """Who this is, once he has shown that he knows the secret; None for a name that nobody has, and for one who has
        to show another certificate, too. certificate: the common name of that which was verified."""
        found = self.by_name.get(name)
        if found is None or found.certificate not in (None, certificate):
            return None
        return found.login

    @property
    def with_certificates(self) -> list[str]:
        """Names of those who have to show one."""
        return [name for name, user in self.by_name.items() if user.certificate is not None]

    def admitted(self, databases: Mapping[str, str]) -> Users:
        """The same, each with the databases of a server that he may ask, in the server's order.

        databases: name → the policy's, which is another for what is made up of it. Who may ask the one may ask the
        other; who names nothing may ask a server of one policy. Raises CannotOpen DP009, with every mistake.
        """
        policies = list(dict.fromkeys(databases.values()))
        issues: list[Diagnostic] = []
        found: dict[str, User] = {}
        for name, user in self.by_name.items():
            given = user.login.databases or (tuple(policies) if len(policies) == 1 else ())
            loc = dotted(("users", name, "databases"))
            if not given:
                message = f"{loc} is missing, and the server has the databases {listed(policies)}"
                issues.append(Diagnostic("DP009", message, help=(f"databases: [{policies[0]}]",)))
            for unknown in (n for n in given if n not in databases and n not in policies):
                message = f"{loc}: the server has no database {shown(unknown)}{did_you_mean(unknown, databases)}"
                issues.append(Diagnostic("DP009", message, help=(f"databases: [{', '.join(policies)}]",)))
            own = tuple(n for n, policy in databases.items() if n in given or policy in given)
            found[name] = replace(user, login=replace(user.login, databases=own))
        if issues:
            raise CannotOpen(issues)
        return replace(self, by_name=found)


def load_users(path: str | os.PathLike[str]) -> Users:
    """Read a file of users. Raises CannotOpen DP009 (with every mistake), DP001, DP002."""
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as stream:
            text = stream.read(4 * MAX_CHARACTERS + 1).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(name, "it is not UTF-8 text") from None
    except OSError as error:
        raise _refused(name, (error.strerror or "the path is not valid").lower()) from None
    return parse_users(text, name, Path(path).parent)


def parse_users(text: str, name: str = "<users>", folder: Path = Path()) -> Users:
    """Read a file of users from its text. folder: where files lie that it names. Raises CannotOpen."""
    try:
        return _read(text, name, folder)
    except CannotOpen as refusal:
        raise CannotOpen([_without_text(d) for d in refusal.diagnostics]) from None


def _without_text(found: Diagnostic) -> Diagnostic:
    """The same finding with its line's number and without the line: a password may stand in it."""
    if found.source is None or found.span is None:
        return found
    line = found.source.position(found.span.start)[0]
    return replace(found, message=f"{found.source.name}:{line}: {found.message}", source=None, span=None)


def _read(text: str, name: str, folder: Path) -> Users:
    document = read_yaml(Source(text, name), Path())
    found = list(document.problems)
    try:
        file = _Users.model_validate(document.value)
    except ValidationError as error:
        found += [_issue(e["type"], e["loc"], e["msg"]).diagnostic(document.places) for e in error.errors()]
        raise CannotOpen(sorted(found, key=lambda d: -1 if d.span is None else d.span.start)) from None
    found += _meaning(file, document.places)
    if found:
        raise CannotOpen(found)
    by_name = {n: User(u.secret, _login(n, u), u.certificate, u.subject) for n, u in file.users.items()}
    return Users(by_name, None if file.oidc is None else _provider(file.oidc, name, folder))


def _provider(said: _Oidc, name: str, folder: Path) -> Provider:
    try:
        secret = None if said.secret_file is None else (folder / said.secret_file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise _refused(name, "the secret_file of oidc cannot be read") from None
    return Provider(said.issuer.rstrip("/"), said.client, said.claim, secret)


def _issue(kind: str, loc: tuple[int | str, ...], message: str) -> Issue:
    place: Loc = tuple(loc)
    if kind == MESSAGE:
        return Issue(place, message, code="DP009")
    if kind == "missing":
        return Issue(place, "is missing", code="DP009", help=(_ADD,))
    if kind == "extra_forbidden":
        words = [part for part in place[:-1] if isinstance(part, str)]
        model = _Users if not words else _User if len(words) == 2 else _KEYS.get(words[-1], _User)
        known = list(model.model_fields)
        hint = did_you_mean(str(place[-1]), known) or f"; known here: {listed(known, 16)}"
        return Issue(place, f"is not a key of a file of users{hint}", key=True, code="DP009")
    return Issue(place, "must be a mapping (key: value)", code="DP009", help=(_ADD,))


def _meaning(file: _Users, places: Places) -> Iterator[Diagnostic]:
    subjects = [(user.subject, user.role) for user in file.users.values() if user.subject is not None]
    if len(set(subjects)) != len(subjects):
        yield Issue(("users",), "gives one subject to two logins of a role", code="DP009").diagnostic(places)
    if file.oidc is not None and not _is_safe(file.oidc.issuer):
        yield Issue(("oidc", "issuer"), "must be an address https://…", code="DP009").diagnostic(places)
    if not file.users:
        yield Issue(("users",), "names nobody", code="DP009", help=(_ADD,)).diagnostic(places)
    for name, user in file.users.items():
        if not usable_name(name) or len(name.encode()) > 63:
            message = "is no name of a user: at most 63 bytes without control characters"
            yield Issue(("users", name), message, key=True, code="DP009").diagnostic(places)
        if user.subject is not None and (file.oidc is None or user.certificate is not None):
            message = (
                "needs oidc:, which says who vouches for it"
                if file.oidc is None
                else ("is for the console, which lets nobody in who has to show a certificate")
            )
            yield Issue(("users", name, "subject"), message, code="DP009").diagnostic(places)
        if user.secret is None and user.certificate is None and user.subject is None:
            yield Issue(("users", name, "secret"), "is missing", code="DP009", help=(_ADD,)).diagnostic(places)
        if user.defaults.epsilon is not None and user.defaults.rho is not None:
            message = "give epsilon and rho, and each says how much to spend"
            yield Issue(("users", name, "defaults"), message, code="DP009").diagnostic(places)


def _is_safe(url: str) -> bool:
    """Under TLS, or on this machine."""
    return url.startswith("https://") or re.match(r"http://(127\.0\.0\.1|\[::1\]|localhost)[:/]", url) is not None


def _login(name: str, user: _User) -> Login:
    given, most = user.defaults, user.ceilings
    defaults = StatementSettings(
        epsilon=_amount(given.epsilon), delta=_amount(given.delta), rho=_amount(given.rho),
        allow_dearer=given.allow_dearer, intervals=given.intervals,
    )  # fmt: skip
    query, hour, day = (
        None if x is None else _amount(x.epsilon) for x in (most.per_query, most.per_hour, most.per_day)
    )
    ceilings = Ceilings(query, hour, day, most.statements, _amount(most.least_epsilon))
    account = user.account or name
    return Login(name, account, user.role, user.kind, defaults, ceilings, may=user.may, databases=user.databases)


def _amount(amount: Fraction | None) -> str | None:
    """As a person would write it: a decimal where one is exact."""
    if amount is None:
        return None
    decimal = show_spent(amount, 20)
    return decimal if Fraction(decimal) == amount else str(amount)


def _refused(name: str, reason: str) -> CannotOpen:
    shown_name = name if name.isprintable() and len(name) <= 300 else repr(name[:100])
    message = f"the file of users {shown_name} cannot be read: {reason}"
    return CannotOpen([Diagnostic("DP009", message, Source("", shown_name), Span(0, 0), help=(_ADD,))])
