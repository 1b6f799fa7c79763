"""Options that would be spelt by several functions, as one parameter: a dataclass whose fields typer knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_type_hints


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """A command for typer. In the place of each parameter that is a dataclass stand its fields; the command gets the
    dataclass made of what they are given.
    """
    groups: dict[str, Any] = {name: hint for name, hint in get_type_hints(command).items() if is_dataclass(hint)}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = groups.get(parameter.name)
        inner = [parameter] if group is None else inspect.signature(group, eval_str=True).parameters.values()
        shown += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in inner]

    def run(**given: Any) -> int:
        made = {name: group(**{f: given.pop(f) for f in group.__dataclass_fields__}) for name, group in groups.items()}
        return command(**given, **made)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run
