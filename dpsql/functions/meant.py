"""What the core is handed: the functions of the registry, as `core/values/meaning.py` asks for them."""

from __future__ import annotations

from dpsql.core.ir.expressions import Expr
from dpsql.core.ir.types import SqlType
from dpsql.core.values.meaning import Env, Meaning
from dpsql.core.values.value import Args, Value
from dpsql.diagnostics.diagnostic import Span
from dpsql.functions import expression_values
from dpsql.functions.cast import cast
from dpsql.functions.registry import REGISTRY
from dpsql.functions.signature import comparison_types


class Functions(Meaning):
    """Asks the modules, by their names of the moment: tests put others in their place."""

    def evaluate(self, expr: Expr, env: Env) -> Value:
        return expression_values.evaluate(expr, env)

    def call(self, name: str, values: tuple[Value, ...], span: Span | None, expr: Expr | None = None) -> Value:
        return expression_values.call(name, values, span, expr)

    def cast(self, arg: Value, target: SqlType) -> Value:
        return cast(arg, target)

    def first_name(self, name: str) -> str:
        return REGISTRY[name].name

    def compared_as(self, args: Args) -> SqlType | None:
        return comparison_types(args)
