"""The file of users: who may log in, with what secret, whose account is charged, and what each may ask.

    users:
      ana:
        secret: SCRAM-SHA-256$4096:…    # `dpsql user add ana` prints it
        account: ana                    # of the policy's budgets; left out: the name
        role: analyst                   # or custodian
        kind: person                    # or bi, for a tool that says nothing of ε
        defaults: {epsilon: 0.1, delta: 1e-9}
        ceilings: {per_query: {epsilon: 0.5}, per_hour: {epsilon: 1}, per_day: {epsilon: 2}}
        may: [summaries]                # CREATE and DROP DP SUMMARY; left out: neither
        databases: [clinic]             # of the server, and what is made up of them; left out: its only one

No password stands in it. What it says is read once, when the server starts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, ValidationError

from dpsql.core.privacy_loss import show_spent
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.file.scalars import MESSAGE, Flag, Name, Positive, Probability, one_of, usable_name, wrong
from dpsql.policy.file.yaml_text import MAX_CHARACTERS, read_yaml
from dpsql.policy.issues import Issue, did_you_mean, dotted, listed, shown
from dpsql.server.statements import Ceilings, Login, Settings
from dpsql.server.wire.scram import Secret, read_secret, secret_of_nobody

if TYPE_CHECKING:
    from dpsql.core.policy.positions import Loc, Places

RIGHTS: Final = ("summaries",)
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


class _Ceilings(_File):
    per_query: _Loss | None = None
    per_hour: _Loss | None = None
    per_day: _Loss | None = None


class _User(_File):
    secret: Annotated[Secret, PlainValidator(_secret)]
    account: Name | None = None
    role: Annotated[Literal["analyst", "custodian"], one_of("analyst", "custodian")] = "analyst"
    kind: Annotated[Literal["person", "bi"], one_of("person", "bi")] = "person"
    defaults: _Defaults = _Defaults()
    ceilings: _Ceilings = _Ceilings()
    may: Annotated[tuple[str, ...], BeforeValidator(_rights)] = ()
    databases: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()


class _Users(_File):
    users: dict[str, _User]


_KEYS: Final[dict[str, type[BaseModel]]] = {
    "defaults": _Defaults, "ceilings": _Ceilings, "per_query": _Loss, "per_hour": _Loss, "per_day": _Loss,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class User:
    """One who may log in. login: what every session of his begins with, but for the address."""

    secret: Secret
    login: Login


@dataclass(frozen=True, slots=True)
class Users:
    """All who may log in, by name."""

    by_name: Mapping[str, User]

    def secret_of(self, name: str) -> Secret:
        """The secret to ask for. Of a name that nobody has, one that no password fits, the same on each call but for
        what no client sees: that a name is unknown is not told."""
        found = self.by_name.get(name)
        if found is not None:
            return found.secret
        first = next(iter(self.by_name.values()), None)
        key = hashlib.sha256(b"nobody" + (b"" if first is None else first.secret.server_key)).digest()
        return secret_of_nobody(name, None if first is None else first.secret, key)

    def login(self, name: str) -> Login | None:
        """Who this is, once he has shown that he knows the secret; None for a name that nobody has."""
        found = self.by_name.get(name)
        return None if found is None else found.login

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
        return Users(found)


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
    return parse_users(text, name)


def parse_users(text: str, name: str = "<users>") -> Users:
    """Read a file of users from its text. Raises CannotOpen."""
    try:
        return _read(text, name)
    except CannotOpen as refusal:
        raise CannotOpen([_without_text(d) for d in refusal.diagnostics]) from None


def _without_text(found: Diagnostic) -> Diagnostic:
    """The same finding with its line's number and without the line: a password may stand in it."""
    if found.source is None or found.span is None:
        return found
    line = found.source.position(found.span.start)[0]
    return replace(found, message=f"{found.source.name}:{line}: {found.message}", source=None, span=None)


def _read(text: str, name: str) -> Users:
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
    return Users({name: User(user.secret, _login(name, user)) for name, user in file.users.items()})


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
    if not file.users:
        yield Issue(("users",), "names nobody", code="DP009", help=(_ADD,)).diagnostic(places)
    for name, user in file.users.items():
        if not usable_name(name) or len(name.encode()) > 63:
            message = "is no name of a user: at most 63 bytes without control characters"
            yield Issue(("users", name), message, key=True, code="DP009").diagnostic(places)
        if user.defaults.epsilon is not None and user.defaults.rho is not None:
            message = "give epsilon and rho, and each says how much to spend"
            yield Issue(("users", name, "defaults"), message, code="DP009").diagnostic(places)


def _login(name: str, user: _User) -> Login:
    given, most = user.defaults, user.ceilings
    defaults = Settings(
        epsilon=_amount(given.epsilon), delta=_amount(given.delta), rho=_amount(given.rho),
        allow_dearer=given.allow_dearer,
    )  # fmt: skip
    ceilings = Ceilings(*(None if loss is None else _amount(loss.epsilon) for loss in (most.per_query, most.per_hour,
        most.per_day)))  # fmt: skip
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
