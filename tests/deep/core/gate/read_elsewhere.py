"""The same fuzz for other engines' own parsers, by hand: `python -m tests.deep.core.gate.read_elsewhere NAME`.

`postgres` needs the package pglast, which is PostgreSQL's parser and not among our requirements (GPL); `spark` a whole
pyspark with its Java, as .venv-engines/spark-server has it. What an engine cannot parse is counted, and is no hole:
nothing runs.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from dpsql.core.gate.grammar import is_scalar
from dpsql.core.gate.vocabularies import POSTGRES, SPARK, Vocabulary
from dpsql.core.printing.dialect import Dialect
from dpsql.spelling.postgres_functions import POSTGRES as POSTGRES_DIALECT
from dpsql.spelling.spark_functions import SPARK as SPARK_DIALECT
from tests.support.scalar_texts import ScalarText, texts
from tests.support.spoiled_texts import spoiled

Reader = Callable[[ScalarText], str]
REFUSED = "the engine cannot parse it"
TEXTS = 100_000


class HoleError(Exception):
    """What an admitted text holds that it must not."""


def require(found: object, why: str) -> None:
    """Raises HoleError."""
    if not found:
        raise HoleError(why)


# --- PostgreSQL ------------------------------------------------------------------------------------------------------

NODES = {
    "A_Expr", "A_Const", "FuncCall", "CaseExpr", "CaseWhen", "TypeCast", "ColumnRef", "BoolExpr", "NullTest",
    "CoalesceExpr", "MinMaxExpr", "A_ArrayExpr", "List", "TypeName", "String", "Integer", "CollateClause",
    "NamedArgExpr", "A_Indirection", "A_Indices", "BooleanTest",
}  # fmt: skip
SYNTAX = {"extract", "like_escape"}
"""Functions that the parser makes of the grammar's words."""


def of_postgres() -> Reader:
    """Reads what libpg_query makes of a text."""
    from pglast.parser import ParseError, parse_sql_json

    def complaint(text: ScalarText) -> str:
        try:
            (statement,) = json.loads(parse_sql_json(f"SELECT 1 + {text.text} * 2"))["stmts"]
        except ParseError:
            return REFUSED
        try:
            (target,) = only(statement["stmt"]["SelectStmt"], "targetList")
            one, product = operands(target["ResTarget"], "+")
            inner, two = operands({"val": product}, "*")
            require((constant(one), constant(two)) == (1, 2), "it binds to what stands around it")
            atoms = (json.loads(parse_sql_json(f"SELECT {atom}")) for atom in text.atoms)
            scalar(inner, {names(ref) for atom in atoms for ref in found("ColumnRef", atom)})
        except HoleError as hole:
            return str(hole)
        return ""

    return complaint


def only(select: Any, *parts: str) -> Any:
    """The first of these parts of a SELECT that has no others."""
    require(set(select) <= {*parts, "limitOption", "op"}, "more than a list")
    return select[parts[0]]


def operands(target: Any, name: str) -> tuple[Any, Any]:
    """Of an operator without a name."""
    call = target["val"].get("A_Expr", {})
    require(set(target) <= {"val", "location"} and call.get("name") == [{"String": {"sval": name}}], "it binds")
    return call["lexpr"], call["rexpr"]


def constant(node: Any) -> Any:
    """Of a whole number; 0 is written as nothing."""
    value = node.get("A_Const", {}).get("ival")
    return None if value is None else value.get("ival", 0)


def names(ref: Any) -> tuple[Any, ...]:
    """Of a column."""
    return tuple(field.get("String", {}).get("sval") for field in ref["fields"])


def found(kind: str, tree: Any) -> Iterator[Any]:
    """All nodes of a kind."""
    for key, below in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        if key == kind:
            yield below
        yield from found(kind, below)


def scalar(tree: Any, columns: set[tuple[Any, ...]]) -> None:
    """Raises HoleError."""
    for key, below in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        if key == "SubLink":
            subquery(below, columns)
            continue
        require(not str(key)[0].isupper() or key in NODES, str(key))
        if key == "ColumnRef":
            require(names(below) in columns, f"the column {names(below)}")
        if key == "FuncCall":
            *schema, name = [part["String"]["sval"] for part in below["funcname"]]
            own = POSTGRES.made is not None and POSTGRES.made.fullmatch(".".join([*schema, name]))
            listed = name in POSTGRES.functions | POSTGRES.special | SYNTAX and schema in ([], ["pg_catalog"])
            require(own or listed, f"the function {name}")
            require(set(below) <= {"funcname", "args", "funcformat", "location"}, f"a form of {name}")
        scalar(below, columns)


def subquery(link: Any, columns: set[tuple[Any, ...]]) -> None:
    """The two that the grammar has: values that are named, and a server's zones."""
    require(link["subLinkType"] == "EXPR_SUBLINK", "a subquery")
    select = link["subselect"]["SelectStmt"]
    (told,) = only(select, "targetList", "fromClause", "whereClause")
    (source,) = select["fromClause"]
    if table := source.get("RangeVar"):
        require((table.get("schemaname"), table["relname"]) == ("pg_catalog", "pg_timezone_names"), "a table")
        return scalar(select["whereClause"], {("z", "name")})
    values = only(source["RangeSubselect"]["subquery"]["SelectStmt"], "targetList", "limitOffset")
    require("whereClause" not in select and source["RangeSubselect"]["alias"] == {"aliasname": "v"}, "a subquery")
    for value in values:
        scalar(value["ResTarget"]["val"], columns)
    return scalar(told["ResTarget"]["val"], {("v", value["ResTarget"]["name"]) for value in values})


# --- Spark -----------------------------------------------------------------------------------------------------------

CLASSES = {
    "Literal", "Cast", "UnresolvedFunction", "UnresolvedAttribute", "UnresolvedNamedLambdaVariable",
    "LambdaFunction", "CaseWhen", "Concat", "UnresolvedExtractValue", "CreateNamedStruct", "NamePlaceholder",
    "Alias", "Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "UnaryMinus", "EqualTo",
    "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "IsNull", "IsNotNull", "In",
    "Like", "ILike", "And", "Or", "Not", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "StringTrim", "StringTrimLeft",
    "StringTrimRight",
}  # fmt: skip
MADE = {"between", "array"}
"""Functions that the parser makes of the grammar's words."""


def of_spark() -> Reader:
    """Reads what Spark's parser makes of a text."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    parser = session._jsparkSession.sessionState().sqlParser()

    def nodes(text: str) -> Iterator[Any]:
        return iter(json.loads(parser.parseExpression(text).toJSON()))

    def complaint(text: ScalarText) -> str:
        try:
            read = nodes(f"1 + {text.text} * 2")
        except Exception:  # one of py4j's, whatever the parser says
            return REFUSED
        try:
            plus = tree_of(read)
            one, product = [*plus["below"], None][:2]
            require(plus["class"] == "Add" and product["class"] == "Multiply", "it binds to what stands around it")
            inner, two = product["below"]
            require((one.get("value"), two.get("value")) == ("1", "2"), "it binds to what stands around it")
            read_too = (node for atom in text.atoms for node in nodes(atom))
            known = {node["nameParts"] for node in read_too if node["class"].endswith("UnresolvedAttribute")}
            spark_scalar(inner, known, within=False)
        except HoleError as hole:
            return str(hole)
        return ""

    return complaint


def tree_of(nodes: Iterator[Any]) -> Any:
    """Spark lists nodes, each before those below it."""
    node = next(nodes)
    kind = node["class"].rpartition(".")[2].rstrip("$")
    return {**node, "class": kind, "below": [tree_of(nodes) for _ in range(node["num-children"])]}


def spark_scalar(node: Any, columns: set[str], *, within: bool) -> None:
    """within: of a function `v -> …`. Raises HoleError."""
    kind = node["class"]
    require(kind in CLASSES, kind)
    if kind == "UnresolvedAttribute":
        require(node["nameParts"] in columns, f"the column {node['nameParts']}")
    if kind == "UnresolvedNamedLambdaVariable":
        require(within, "a variable of no function")
    if kind == "UnresolvedFunction":
        name = node["nameParts"].strip("[]")
        listed = SPARK.functions | SPARK.special | MADE
        require(name in listed or name.upper() in listed, f"the function {name}")
        require(not any(node.get(p) for p in ("isDistinct", "filter", "orderingWithinGroup")), f"a form of {name}")
    for below in node["below"]:
        spark_scalar(below, columns, within=within or kind == "LambdaFunction")


ENGINES: dict[str, tuple[Callable[[], Reader], Dialect, Vocabulary]] = {
    "postgres": (of_postgres, POSTGRES_DIALECT, POSTGRES),
    "spark": (of_spark, SPARK_DIALECT, SPARK),
}


def main(name: str, seeds: int = 10) -> int:
    """0 if no hole was found in a hundred thousand texts of each seed."""
    reader, dialect, vocabulary = ENGINES[name]
    complaint, admitted, holes = reader(), 0, Counter[str]()
    for seed in range(seeds):
        given = list(texts(dialect, 6, seed))
        for text in (*given, *spoiled(given, random.Random(seed), TEXTS)):
            if is_scalar.__wrapped__(text.text, text.atoms, vocabulary):
                admitted += 1
                if told := complaint(text):
                    holes[told] += 1
                    if told != REFUSED:
                        print(f"{told}: {text.text}")
        print(f"{(seed + 1) * TEXTS:,} texts, {admitted:,} admitted: {dict(holes)}", flush=True)
    return int(bool(set(holes) - {REFUSED}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
