"""What programs send: JSON that is read strictly, and values for parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from dpsql.core.ir.types import SqlType
from dpsql.core.privacy_loss import exact_delta, exact_epsilon
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.faces.server.front.portals import from_literal
from dpsql.faces.server.statements import Refused, StatementSettings, Value
from dpsql.faces.server.wire.wire_values import Unreadable, wire_type

MOST_QUERIES: Final = 100
"""Of one batch."""


class MalformedBody(Exception):
    """A body that is not what the description of the API says. Its text says where."""


def _amount(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("an amount is a number, or a text that is one")
    text = format(value, "f") if isinstance(value, Decimal) and abs(value.adjusted()) < 100 else str(value)
    if len(text) > 100:
        raise ValueError("an amount has at most 100 characters")
    return text


def _scalar(value: object) -> object:
    if value is None or isinstance(value, bool | str | int | Decimal):
        return value
    raise ValueError("a parameter is null, true, false, a number or a text")


Amount = Annotated[
    str, BeforeValidator(_amount),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "maxLength": 100}]}),
]  # fmt: skip
Scalar = Annotated[
    Any, BeforeValidator(_scalar),
    WithJsonSchema({"type": ["null", "boolean", "number", "string"]}),
]  # fmt: skip


class Body(BaseModel):
    """What is sent: no member but those that are named, each of the kind that is said."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AskedBody(Body):
    """What a query is asked with; a member that is missing is what the login or the policy says."""

    epsilon: Amount | None = Field(None, description="ε to spend, where the query says none itself")
    delta: Amount | None = Field(None, description="δ, for private group keys and Gaussian noise")
    rho: Amount | None = Field(None, description="ρ in place of ε, under zCDP")
    allow_dearer: bool | None = Field(None, description="take a better stored answer that costs more than ε")
    coverage: bool = Field(False, description="tell, for a tenth of the price, how many units are above the limits")
    limits: Literal["auto", "declared", "search"] = Field(
        "auto", description="search: find missing ones for a part of ε; auto: as the policy says"
    )

    def settings(self) -> StatementSettings:
        """Raises Refused DP406, DP903."""
        if self.epsilon is not None and self.rho is not None:
            raise _refused("DP903", "give epsilon or rho, not both", "leave one of them out")
        for name, text in (("epsilon", self.epsilon), ("delta", self.delta), ("rho", self.rho)):
            try:
                if text is not None:
                    exact_delta(text) if name == "delta" else exact_epsilon(text, name)
            except ValueError as error:
                raise _refused("DP406", str(error), f"SET {name} = {'1e-9' if name == 'delta' else '0.5'}") from None
        return StatementSettings(
            self.epsilon, self.delta, self.rho, self.allow_dearer, coverage=self.coverage, limits=self.limits
        )


class Question(Body):
    """One query."""

    sql: str = Field(max_length=1_000_000)
    parameters: list[Scalar] = Field([], max_length=1_000, description="values for $1, $2, …")
    settings: AskedBody = AskedBody()  # type: ignore[call-arg]


class Questions(Body):
    """Several queries, of which the cost together is asked."""

    queries: list[Question] = Field(min_length=1, max_length=MOST_QUERIES)


def read(body: bytes, kind: type[Body]) -> Any:
    """A body. Raises Malformed."""
    return checked(data_of(body), kind)


def data_of(body: bytes) -> Any:
    """JSON as it stands there; numbers that are not whole are decimals. Raises Malformed."""
    try:
        data = json.loads(
            body.decode("utf-8"), parse_float=Decimal, parse_constant=_constant, object_pairs_hook=_object
        )
        json.dumps(data, ensure_ascii=False, default=str).encode("utf-8")  # a half of a pair of surrogates is no text
    except RecursionError:
        raise MalformedBody("it is nested too deeply") from None
    except (ValueError, ArithmeticError):
        raise MalformedBody("it is not JSON in UTF-8") from None
    return data


def checked(data: Any, kind: type[Body]) -> Any:
    """What data means. Raises Malformed."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(str(part) for part in first["loc"])[:200]
        raise MalformedBody(f"/{where}: {first['msg'].removeprefix('Value error, ')}") from None


def _constant(name: str) -> object:
    raise ValueError(name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member comes twice")
    return found


def values_for(parameters: Sequence[SqlType], given: Sequence[Any]) -> tuple[Value, ...]:
    """The values of parameters, in their types. Raises Refused DP013."""
    if len(parameters) != len(given):
        count = f"{len(parameters)} parameter{'' if len(parameters) == 1 else 's'}"
        raise _refused("DP013", f"the query has {count}, and {len(given)} values were given", "one value for each $n")
    found: list[Value] = []
    for number, (type_, value) in enumerate(zip(parameters, given, strict=True), 1):
        text = None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        try:
            found.append(from_literal(text, wire_type(type_)))
        except Unreadable as error:
            raise _refused("DP013", f"${number}: {error}", f"a value of type {type_}") from None
    return tuple(found)


def _refused(code: str, message: str, help: str) -> Refused:
    notes = (NOTHING_RAN,)
    return Refused([Diagnostic(code, message, help=(help,), notes=notes)])
