"""The API's description, OpenAPI 3.1. What is sent is described by the models that read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from dpsql import __version__
from dpsql.diagnostics.note import Rank
from dpsql.faces.server.web.api.bodies import Question, Questions
from dpsql.faces.server.web.api.problems import MEDIA_TYPE

_JSON: Final = "application/json"
_OWN: Final = "#/$defs/"
Schema = dict[str, Any]
_DATABASE: Final[Schema] = {
    "name": "database", "in": "query", "required": False, "schema": {"type": "string"},
    "description": "which one is asked; left out: the only one of the login, or that of its token",
}  # fmt: skip


def document() -> Schema:
    """The whole description. It names no database, for whoever comes may read it."""
    _, definitions = models_json_schema(
        [(Question, "validation"), (Questions, "validation")], ref_template="#/components/schemas/{model}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dpsql",
            "version": __version__,
            "description": "Released numbers of private tables, their prices and budgets. A statement is answered, "
            "charged and noted as over PostgreSQL's protocol.",
        },
        "security": [{"basic": []}, {"bearer": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer", "description": "a token of POST /api/v1/session"},
            },
            "schemas": {**definitions["$defs"], **_schemas()},
        },
    }


def alone(name: str) -> Schema:
    """The schema of an answer, with those that it needs within it."""
    told = json.dumps(_schemas()).replace("#/components/schemas/", _OWN)
    every: dict[str, Schema] = json.loads(told)
    needed: list[str] = [name]
    for found in needed:  # which grows
        needed += [other for other in every if f'"{_OWN}{other}"' in json.dumps(every[found]) and other not in needed]
    return {**every[name], "$defs": {other: every[other] for other in needed[1:]}}


def _paths() -> Schema:
    asked = {
        "query": ("Run a query: it is charged, unless its answer is stored", "Question", "Answer"),
        "explain": ("The plan of a query, its price and its errors; free", "Question", "Explained"),
        "cost": ("The price of a query and its errors; free", "Question", "Cost"),
        "batch/cost": ("The price of several queries together; free", "Questions", "CostOfBatch"),
    }
    read = {
        "budget": ("What the account has spent and has left of each privacy unit", "Budget"),
        "tables": ("What may be asked", "Tables"),
    }
    found: Schema = {}
    for name, (what, body, answer) in asked.items():
        found[f"/api/v1/{name}"] = {"post": _operation(name, what, answer, body)}
    for name, (what, answer) in read.items():
        found[f"/api/v1/{name}"] = {"get": _operation(name, what, answer)}
    end = {"204": {"description": "ended"}, **_problems(("400", "401", "403", "503"))}
    found["/api/v1/session"] = {
        "post": _operation("begin-session", "A token in place of name and password", "Session"),
        "delete": {"operationId": "end-session", "summary": "End the session of this token", "responses": end},
    }
    return found


def _operation(name: str, what: str, answer: str, body: str = "") -> Schema:
    content = {_JSON: {"schema": _ref(answer)}}
    found: Schema = {
        "operationId": name.replace("/", "-"),
        "summary": what,
        "parameters": [_DATABASE],
        "responses": {
            "200": {"description": "answered", "content": content},
            **_problems(("400", "401", "403", "404", "413", "422", "429", "500", "503")),
        },
    }
    if body:
        found["requestBody"] = {"required": True, "content": {_JSON: {"schema": _ref(body)}}}
    return found


def _problems(statuses: tuple[str, ...]) -> Schema:
    words = {
        "400": "not understood", "401": "who is asking?", "403": "not allowed, or no budget is left for it",
        "404": "no such database for this login", "413": "too long", "422": "refused: nothing was run",
        "429": "too much at one time", "500": "failed",
        "503": "not now",
    }  # fmt: skip
    content = {MEDIA_TYPE: {"schema": _ref("Problem")}}
    return {status: {"description": words[status], "content": content} for status in statuses}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(members: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(members), "required": list(members), "additionalProperties": False}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _schemas() -> Schema:
    text: Schema = {"type": "string"}
    number: Schema = {"type": "number"}
    whole: Schema = {"type": "integer"}
    width: Schema = {"type": ["number", "string", "null"], "description": "a text for what JSON has no number for"}
    loss = _object(dict.fromkeys(("epsilon", "delta", "rho"), number))
    priced = {
        "price": _or_null(_ref("Loss")),
        "left": _or_null(_ref("Loss")),
        "times": _or_null(whole),
        "errors": {
            "type": "object",
            "additionalProperties": width,
            "description": "column → ±; null: known with the answer",
        },
        "confidence": number,
        "notes": _list(_ref("Note")),
    }
    rows = {
        "columns": _list(_object({"name": text, "type": text})),
        "rows": _list(_list({})),
        "intervals": _list(_list(_or_null({"type": "array", "items": _or_null(width), "minItems": 2, "maxItems": 2}))),
    }
    span = _object(dict.fromkeys(("start", "end", "line", "column"), whole))
    column = {"name": text, "type": _or_null(text), "nullable": {"type": "boolean"}, "declared": _list(text)}
    return {
        "Loss": {**loss, "description": "amounts of ε, δ and ρ, rounded up"},
        "Span": {**span, "description": "characters of the statement, from 0; line and column from 1"},
        "Note": {
            **_object({"rank": {"enum": [rank.word for rank in Rank]}, "text": text}),
            "description": "danger: the answer is not what it seems; bias: what limits take away; source: its origin",
        },
        "Finding": _object({
            "code": text, "severity": text, "message": text, "label": _or_null(text), "span": _or_null(_ref("Span")),
            "hints": _list(text), "notes": _list(text),
        }),
        "Problem": {
            **_object({
                "type": text, "title": text, "status": whole, "detail": text, "code": _or_null(text),
                "span": _or_null(_ref("Span")), "hint": _or_null(text), "findings": _list(_ref("Finding")),
                "spent": _or_null(_ref("Loss")),
            }),
            "description": "RFC 9457; spent is null where a run was charged and ended without an answer",
        },
        "Rows": _object(rows),
        "Answer": _object({
            **rows,
            "answers": {**_list(_ref("Rows")), "description": "of a batch, in place of rows of its own"},
            "confidence": number,
            "spent": _or_null(_ref("Loss")),
            "notes": _list(_ref("Note")),
            "warnings": _list(_ref("Finding")),
            "plan": _or_null(text),
            "entry": _or_null(text),
        }),
        "Cost": _object(priced),
        "Explained": _object({"operators": _list(text), "plan": {"type": "object"}, **priced}),
        "CostOfBatch": _object({
            "queries": _list({"anyOf": [_ref("Cost"), _object({"refused": _ref("Problem")})]}),
            "price": _ref("Loss"),
            "left": _or_null(_ref("Loss")),
            "fits": {"type": "boolean"},
        }),
        "Budget": _object({
            "database": text,
            "account": text,
            "units": _list(_object({"unit": text, "spent": _ref("Loss"), "left": _or_null(_ref("Loss"))})),
            "ceilings": _object({
                **dict.fromkeys(("per_query", "per_hour", "per_day", "least_epsilon"), _or_null(text)),
                "statements": _or_null({"type": "integer"}),
            }),
            "closed_periods": _list(_object({
                **dict.fromkeys(("table_name", "told_by", "every"), text),
                **dict.fromkeys(("first_day", "last_day"), _or_null(text)),
            })),
            "periods": _list(_object({
                "unit": text, "spent": _ref("Loss"), "left": _or_null(_ref("Loss")),
                **dict.fromkeys(("first_day", "last_day"), _or_null(text)),
            })),
            "counters": _list(_object({
                **dict.fromkeys(("name", "on_table", "first_day", "made_by", "price", "state", "query"), text),
                "last_day": _or_null(text), "held": {"type": "boolean"},
            })),
        }),
        "Tables": _object({
            "database": text,
            "tables": _list(_object({
                "name": text, "public": {"type": "boolean"}, "rows_of": text, "promises": _list(text),
                "columns": _list(_object(column)),
            })),
        }),
        "Session": _object({"token": text, "database": text, "idle_seconds": whole, "seconds": whole}),
    }  # fmt: skip
