"""What SET, RESET and SHOW are about: how a session's statements are asked, and the settings that tools expect.

A value: SET makes another one, so that ROLLBACK can go back. Names that PostgreSQL has and dpsql does not use are
accepted and shown again; what could change whose account is charged is refused, and so is every other name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dpsql import __version__
from dpsql.core.privacy_loss import exact_delta, exact_epsilon
from dpsql.faces.server.catalogue.postgres_types import postgres_settings
from dpsql.faces.server.front.commands.commands import Set
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.statements import StatementSettings
from dpsql.frontend.text.comment_settings import NAMES

REPORTED: Final = (
    "server_version", "server_encoding", "client_encoding", "application_name", "is_superuser", "session_authorization",
    "DateStyle", "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings",
    "default_transaction_read_only", "in_hot_standby",
)  # fmt: skip
"""What clients are told when they connect, and whenever it changes."""

_FIXED: Final = {
    "server_version": "", "server_version_num": "150000", "server_encoding": "UTF8",
    "is_superuser": "off", "session_authorization": "", "integer_datetimes": "on", "in_hot_standby": "off",
    "max_identifier_length": "63", "transaction_read_only": "on", "lc_collate": "C", "lc_ctype": "C",
    "max_index_keys": "32", "block_size": "8192", "data_directory_mode": "0700", "ssl": "on",
}  # fmt: skip
_FREE: Final = {
    "application_name": "", "search_path": '"$user", public', "extra_float_digits": "1", "statement_timeout": "0",
    "lock_timeout": "0", "idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0",
    "client_min_messages": "notice", "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed", "default_transaction_read_only": "on", "jit": "off",
    "default_transaction_deferrable": "off", "transaction_deferrable": "off", "row_security": "on", "work_mem": "4MB",
    "synchronous_commit": "on", "lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C",
    "escape_string_warning": "on", "array_nulls": "on", "xmloption": "content", "bytea_output": "hex",
    "client_encoding": "UTF8", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "TimeZone": "UTC",
    "standard_conforming_strings": "on", "default_tablespace": "", "default_table_access_method": "heap",
    "enable_seqscan": "on", "geqo": "on", "statement_cache_size": "0", "password_encryption": "scram-sha-256",
    "synchronize_seqscans": "on", "check_function_bodies": "on", "quote_all_identifiers": "off",
}  # fmt: skip
_SYSTEM: Final = postgres_settings()
"""PostgreSQL's others, with the values that they begin with: remembered, without effect."""
_NAMES: Final = {name.lower(): name for name in (*_SYSTEM, *_FIXED, *_FREE)}
_LEVELS: Final = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")
_ON: Final = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
OWN: Final = tuple(name for name in NAMES if name != "anyway")  # which is said of one query, and of no session
"""Settings of dpsql itself: each may be written with `dpsql.` before it."""
_UNITS: Final = {"": 1, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_AUTHORITY: Final = frozenset({"role", "session_authorization", "analyst", "account", "dpsql.analyst", "dpsql.account"})


def _one_of(*words: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.strip().lower() not in words:
            raise ValueError
        return value.strip().lower()

    return check


def _encoding(value: str) -> str:
    if re.sub(r"[^a-z0-9]", "", value.lower()) not in ("utf8", "unicode", "sqlascii"):
        raise ValueError
    return "UTF8"


def _date_style(value: str) -> str:
    words = {word.strip().lower() for word in value.split(",")}
    if not words <= {"iso", "mdy", "ymd", "dmy", "us", "european", "euro", "noneuropean"}:
        raise ValueError
    return "ISO, MDY"


def _interval_style(value: str) -> str:
    if value.strip().lower() not in ("postgres", "postgres_verbose", "sql_standard", "iso_8601"):
        raise ValueError
    return "postgres"


_CHECKED: Final[dict[str, Callable[[str], str]]] = {
    "client_encoding": _encoding, "DateStyle": _date_style, "IntervalStyle": _interval_style,
    "TimeZone": lambda value: "UTC", "standard_conforming_strings": _one_of("on", "true", "1"),
    "bytea_output": _one_of("hex"), "client_min_messages": _one_of(*_LEVELS, "info"),
    "default_transaction_read_only": lambda value: "on", "statement_timeout": lambda value: str(milliseconds(value)),
}  # fmt: skip
"""What is more than remembered: each gives the value that holds, or raises ValueError for one that cannot hold."""


def milliseconds(value: str) -> int:
    """A time as PostgreSQL writes it, `5s`; a bare number is milliseconds. Raises ValueError."""
    found = re.fullmatch(r"\s*(\d{1,10})\s*([a-z]*)\s*", value.lower())
    if found is None or found[2] not in _UNITS:
        raise ValueError
    return int(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True, slots=True)
class Variables:
    """What holds now. asked: of statements to come. opened: what RESET goes back to. kept: PostgreSQL's, as set.

    made_up: whether the rows of the database are, which the server's version says where a tool shows it.
    """

    asked: StatementSettings = field(default_factory=StatementSettings)
    opened: StatementSettings = field(default_factory=StatementSettings)
    kept: Mapping[str, str] = field(default_factory=dict)
    kept_at_start: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    made_up: bool = False

    def as_opened(self) -> Variables:
        """The same, and RESET comes back to it: what the login and the start of the connection said."""
        return replace(self, opened=self.asked, kept_at_start=self.kept)

    def reset(self) -> Variables:
        """RESET ALL."""
        return replace(self, asked=self.opened, kept=self.kept_at_start)

    def show(self, name: str) -> str:
        """What SHOW says. Raises Fault 42704 for a name that does not exist."""
        own = own_name(name)
        if own is not None:
            return _shown(getattr(self.asked, own))
        known = _NAMES.get(name)
        if known is None:
            raise _unknown(name)
        return self.get(known)

    def get(self, name: str) -> str:
        """The value of one of PostgreSQL's settings, as it is spelled there."""
        if name == "session_authorization":
            return self.user
        if name == "server_version":
            return f"15.0 (dpsql {__version__}{'; made-up data' if self.made_up else ''})"
        return self.kept.get(name, _FIXED.get(name, _FREE.get(name, _SYSTEM.get(name, ""))))

    def all(self) -> list[tuple[str, str]]:
        """Every name and its value, as SHOW ALL lists them."""
        found = [(f"dpsql.{name}", _shown(getattr(self.asked, name))) for name in OWN]
        return sorted(found + [(name, self.get(name)) for name in _NAMES.values()], key=lambda pair: pair[0].lower())

    def set(self, name: str, value: str | None) -> Variables:
        """SET, or RESET for None. Raises Fault: 42704 no such name, 55P02 it cannot change, 22023 not this value."""
        own = own_name(name)
        if own is not None:
            return replace(self, asked=self._asked(own, value))
        if name in _AUTHORITY:
            if value is None or (name == "role" and value.lower() == "none"):
                return self
            raise ProtocolFault("42501", f"{name} cannot be set: whose account is charged follows from the login alone")
        known = _NAMES.get(name)
        if known is None:
            raise _unknown(name)
        if known in _FIXED:
            if value is None or value.strip().lower() == self.get(known).lower():
                return self
            raise ProtocolFault("55P02", f'parameter "{name}" cannot be changed')
        kept = dict(self.kept)
        kept.pop(known, None)
        if value is None:
            before = self.kept_at_start.get(known)
            return replace(self, kept=kept if before is None else {**kept, known: before})
        try:
            kept[known] = _CHECKED.get(known, str)(value)[:1000]
        except ValueError:
            raise ProtocolFault("22023", f'invalid value for parameter "{known}": "{value[:100]}"') from None
        return replace(self, kept=kept)

    def said(self, name: str, value: str) -> Variables:
        """What a comment says of one statement: as `set` does, and what no SET says. Raises Fault 22023."""
        return replace(self, asked=self._asked(name, value))

    def _asked(self, name: str, value: str | None) -> StatementSettings:
        now, before = self.asked, self.opened
        match name:
            case "epsilon" | "rho" if value is None:
                return replace(now, epsilon=before.epsilon, rho=before.rho)
            case _ if value is None:
                return replace(now, **{name: getattr(before, name)})
            case "epsilon":
                return replace(now, epsilon=_amount(name, value), rho=None)
            case "rho":
                return replace(now, rho=_amount(name, value), epsilon=None)
            case "delta":
                return replace(now, delta=_amount(name, value))
            case "limits":
                return replace(now, limits=_word(value))
        switched: dict[str, Any] = {name: _switch(name, value)}
        return replace(now, **switched)

    # --- what the front itself needs -------------------------------------------------------------------------------

    @property
    def tells_notices(self) -> bool:
        """Whether NOTICE is sent (client_min_messages)."""
        return _LEVELS.index(self._least) <= _LEVELS.index("notice")

    @property
    def tells_all(self) -> bool:
        """Whether all notes of an answer are sent, and not the foremost alone."""
        return _LEVELS.index(self._least) <= _LEVELS.index("log")

    @property
    def tells_warnings(self) -> bool:
        """Whether WARNING is sent."""
        return self._least != "error"

    @property
    def _least(self) -> str:
        found = self.get("client_min_messages")
        return "notice" if found == "info" else found

    @property
    def timeout(self) -> float | None:
        """Seconds after which a statement is stopped; None for never."""
        found = int(self.get("statement_timeout"))
        return found / 1000 if found else None

    def reported(self) -> list[tuple[str, str]]:
        """The settings that clients are told."""
        return [(name, self.get(name)) for name in REPORTED]


def own_name(name: str) -> str | None:
    """A setting of dpsql itself, as it is called here; None for any other name."""
    bare = name.removeprefix("dpsql.")
    return bare if bare in OWN else None


def written(what: Set) -> str:
    """A SET for the audit log: the value only of a name that is known here, for it may be a secret elsewhere."""
    name = what.name[:100]
    if what.value is None:
        return f"RESET {name}"
    is_known = own_name(what.name) is not None or what.name in _NAMES or what.name in _AUTHORITY
    return f"SET {name} = {what.value[:100]}" if is_known else f"SET {name}"


def is_variable(name: str) -> bool:
    """Whether SHOW of this name is about a setting, and not about what the policy or the ledger say."""
    return own_name(name) is not None or name in _NAMES


def _unknown(name: str) -> ProtocolFault:
    hint = f"dpsql's own are {', '.join(OWN)}:  SET epsilon = 0.5"
    return ProtocolFault("42704", f'unrecognized configuration parameter "{name[:100]}"', hint)


def _shown(value: str | bool | None) -> str:
    return "on" if value is True else "off" if value is False else value or ""


def _amount(name: str, value: str) -> str:
    read = exact_delta if name == "delta" else lambda text: exact_epsilon(text, name)
    try:
        read(value)
    except ValueError as error:
        raise ProtocolFault(
            "22023", f"[DP406] {error}", f"SET {name} = {'1e-9' if name == 'delta' else '0.5'}"
        ) from None
    return value.strip()


def _switch(name: str, value: str) -> bool:
    if value.strip().lower() not in _ON:
        raise ProtocolFault("22023", f"[DP406] {name} is on or off", f"SET {name} = on")
    return _ON[value.strip().lower()]


def _word(value: str) -> str:
    if value.strip().lower() not in ("auto", "search", "declared"):
        raise ProtocolFault("22023", "[DP406] limits are 'auto', 'search' or 'declared'", "SET limits = 'search'")
    return value.strip().lower()


def startup_options(text: str) -> list[tuple[str, str]]:
    """`-c name=value --name=value` → names and values; a backslash keeps a space. Raises Fault."""
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|[^\s\\])+", text)]
    found: list[tuple[str, str]] = []
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        elif word.startswith(("-c", "--")) and len(word) > 2:
            word = word[2:]
        else:
            raise ProtocolFault("42601", f'invalid command-line argument for server process: "{word[:100]}"')
        name, equals, value = word.partition("=")
        if not equals:
            raise ProtocolFault("42601", f"-c {word[:100]} requires a value")
        found.append((name.strip().lower().replace("-", "_"), value))
    return found
