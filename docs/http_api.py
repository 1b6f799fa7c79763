"""The addresses of the JSON API, from its own description."""

from __future__ import annotations

from dpsql.faces.server.web.api.openapi import document


def addresses() -> str:
    """A table: method and address, what it does, what is sent and what comes back."""
    lines = ["| | | sent | comes back |", "|---|---|---|---|"]
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            lines.append(
                f"| `{method.upper()} {path}` | {operation['summary']} | {_body(operation.get('requestBody'))} "
                f"| {_body(operation['responses'].get('200'))} |"
            )
    return "\n".join(lines)


def _body(held: dict[str, dict[str, dict[str, dict[str, str]]]] | None) -> str:
    if held is None:
        return "–"
    name = held["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return f"`{name}`"
