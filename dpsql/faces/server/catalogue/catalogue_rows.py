"""The rows of PostgreSQL's catalogue that a policy fills: its tables, columns, keys, and what says whose rows they are.

Everything comes from the policy, which analysts may read, and from the names of the server; nothing from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.faces.server.catalogue.keys import Constraint, constraints
from dpsql.faces.server.catalogue.postgres_types import Row, modifier, postgres, type_name, types
from dpsql.policy.tools.show import declared_of, whose_rows

PG_CATALOG, PG_TOAST, PUBLIC, INFORMATION_SCHEMA = 11, 99, 2200, 13500
OWNER, OTHERS, LOGIN, DATABASE, FIRST = 10, 15000, 16384, 16385, 16386
CLASS, HEAP, BTREE, TABLESPACE, INTERNAL = 1259, 2, 403, 1663, 12
OWNER_NAME = "custodian"

SETTINGS: Mapping[str, str] = {
    "server_version": "15.0", "server_version_num": "150000", "server_encoding": "UTF8", "client_encoding": "UTF8",
    "standard_conforming_strings": "on", "integer_datetimes": "on", "TimeZone": "UTC", "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres", "bytea_output": "hex", "search_path": '"$user", public', "max_identifier_length": "63",
    "max_index_keys": "32", "default_transaction_read_only": "on", "transaction_read_only": "on", "jit": "off",
    "transaction_isolation": "repeatable read", "extra_float_digits": "1", "is_superuser": "off",
    "lc_collate": "C.UTF-8", "lc_ctype": "C.UTF-8",
}  # fmt: skip
"""What `SHOW` and `current_setting` say of a server: of those that clients ask for."""


@dataclass(frozen=True, slots=True)
class ClientSchema:
    """What a policy's tables are to a client.

    policy: with the types of its columns filled in; one that is left to the data is shown as `text`. login: who asks.
    others: databases that he may connect to besides this one, which is called as the policy. made_up: whether its rows
    are.
    """

    policy: Policy
    login: str
    others: tuple[str, ...] = ()
    made_up: bool = False

    @property
    def database(self) -> str:
        """What clients connect to."""
        return self.policy.name

    @property
    def tables(self) -> Sequence[tuple[int, Table]]:
        """Each table with its oid."""
        return [(FIRST + i, t) for i, t in enumerate(self.policy.tables.values())]

    @property
    def keys(self) -> Sequence[Constraint]:
        """Primary, unique and foreign keys."""
        return constraints(self.tables, FIRST + len(self.policy.tables))

    def comment(self, table: Table) -> str:
        """What is said of a table where PostgreSQL shows its comment."""
        return "made up; " * self.made_up + ("public" if table.public else f"private: {whose_rows(table)}")

    @staticmethod
    def comment_of(column: Column) -> str:
        """What is declared of a column: its bounds, its groups."""
        return ", ".join(declared_of(column))

    def rows(self) -> dict[str, list[Row]]:
        """The rows of each relation of pg_catalog that has some; columns left out have their type's empty value."""
        keys = self.keys
        return {
            "pg_namespace": [
                {"oid": oid, "nspname": name, "nspowner": OWNER}
                for oid, name in (
                    (PG_CATALOG, "pg_catalog"), (PUBLIC, "public"), (PG_TOAST, "pg_toast"),
                    (INFORMATION_SCHEMA, "information_schema"),
                )
            ],
            "pg_database": [
                {"oid": oid, "datname": name, "datdba": OWNER, "encoding": 6, "datlocprovider": "c",
                 "datcollate": "C.UTF-8", "datctype": "C.UTF-8", "datallowconn": True, "datconnlimit": -1,
                 "dattablespace": TABLESPACE}
                for oid, name in ((DATABASE, self.database), *enumerate(self.others, OTHERS))
            ],
            "pg_roles": [
                {"oid": oid, "rolname": name, "rolsuper": oid == OWNER, "rolinherit": True, "rolcanlogin": True,
                 "rolconnlimit": -1, "rolpassword": "********"}
                for oid, name in ((OWNER, OWNER_NAME), (LOGIN, self.login))
            ],
            "pg_user": [
                {"usename": name, "usesysid": oid, "usesuper": oid == OWNER, "passwd": "********"}
                for oid, name in ((OWNER, OWNER_NAME), (LOGIN, self.login))
            ],
            "pg_am": [
                {"oid": HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"},
                {"oid": BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"},
            ],
            "pg_collation": [
                {"oid": oid, "collname": name, "collnamespace": PG_CATALOG, "collowner": OWNER, "collprovider": by,
                 "collisdeterministic": True, "collencoding": -1, "collcollate": locale, "collctype": locale}
                for oid, name, by, locale in ((100, "default", "d", None), (950, "C", "c", "C"))
            ],
            "pg_tablespace": [{"oid": TABLESPACE, "spcname": "pg_default", "spcowner": OWNER}],
            "pg_settings": [{"name": name, "setting": value} for name, value in SETTINGS.items()],
            "pg_type": [{k: v for k, v in t.items() if k != "format"} for t in types().values()],
            "pg_get_keywords": [{"word": word} for word in postgres()["keywords"]],
            "pg_tables": [
                {"schemaname": "public", "tablename": t.name, "tableowner": OWNER_NAME} for _, t in self.tables
            ],
            "pg_description": [
                {"objoid": oid, "classoid": CLASS, "objsubid": 0, "description": self.comment(table)}
                for oid, table in self.tables
            ] + [
                {"objoid": oid, "classoid": CLASS, "objsubid": i, "description": said}
                for oid, table in self.tables
                for i, column in enumerate(table.columns.values(), 1)
                if (said := self.comment_of(column))
            ],
            "pg_proc": [
                {"oid": oid, "proname": name, "pronamespace": PG_CATALOG, "proowner": OWNER, "prolang": INTERNAL,
                 "procost": 1.0, "prokind": "f", "proisstrict": True, "provolatile": volatile, "proparallel": "s",
                 "pronargs": len(arguments), "prorettype": result, "proargtypes": arguments, "prosrc": name}
                for oid, name, result, arguments, volatile in postgres()["procedures"]
            ],
            "pg_class": [
                *(_class(oid, t.name, len(t.columns), keys) for oid, t in self.tables),
                *(_index_class(key) for key in keys if key.index),
            ],
            "pg_attribute": self._attributes(keys),
            "pg_constraint": [self._constraint(key, keys) for key in keys],
            "pg_index": [self._index(key) for key in keys if key.index],
        }  # fmt: skip

    def numbers(self, table: int, columns: Sequence[str]) -> list[int]:
        """The places of columns in a table, from 1; 0 for one that the policy does not declare."""
        of = dict(self.tables).get(table)
        places = {} if of is None else {name: i for i, name in enumerate(of.columns, 1)}
        return [places.get(column, 0) for column in columns]

    def _attributes(self, keys: Sequence[Constraint]) -> list[Row]:
        tables = dict(self.tables)
        found = [
            _attribute(oid, i, c.name, type_name(c.sql_type), modifier(c.sql_type), not c.is_nullable)
            for oid, table in tables.items()
            for i, c in enumerate(table.columns.values(), 1)
        ]
        for key in keys:
            columns = [c for name in key.columns if (c := tables[key.table].columns.get(name)) is not None]
            for i, c in enumerate(columns if key.index else (), 1):
                found.append(_attribute(key.index, i, c.name, type_name(c.sql_type), modifier(c.sql_type), False))
        return found

    def _constraint(self, key: Constraint, keys: Sequence[Constraint]) -> Row:
        led = (k.index for k in keys if k.index and (k.table, k.columns) == (key.to, key.to_columns))
        rule = {"confupdtype": "a", "confdeltype": "a", "confmatchtype": "s"}
        return {
            "oid": key.oid, "conname": key.name, "connamespace": PUBLIC, "contype": key.kind, "convalidated": True,
            "conrelid": key.table, "conindid": key.index or next(led, 0), "confrelid": key.to, "conislocal": True,
            "connoinherit": True, "conkey": self.numbers(key.table, key.columns),
            "confkey": self.numbers(key.to, key.to_columns) if key.to else None,
            **(rule if key.to else dict.fromkeys(rule, " ")),
        }  # fmt: skip

    def _index(self, key: Constraint) -> Row:
        zeros = [0] * len(key.columns)
        return {
            "indexrelid": key.index, "indrelid": key.table, "indnatts": len(zeros), "indnkeyatts": len(zeros),
            "indisunique": True, "indisprimary": key.kind == "p", "indimmediate": True, "indisvalid": True,
            "indisready": True, "indislive": True, "indkey": self.numbers(key.table, key.columns),
            "indcollation": zeros, "indclass": zeros, "indoption": zeros,
        }  # fmt: skip


def _class(oid: int, name: str, columns: int, keys: Sequence[Constraint]) -> Row:
    return {
        "oid": oid, "relnamespace": PUBLIC, "relname": name, "relkind": "r", "relowner": OWNER, "relam": HEAP,
        "relpersistence": "p", "relnatts": columns, "relispopulated": True, "relreplident": "d", "reltuples": -1.0,
        "relfilenode": oid, "relhasindex": any(k.table == oid and k.index for k in keys),
        "relhastriggers": any(oid in (k.table, k.to) for k in keys if k.to),
    }  # fmt: skip


def _index_class(key: Constraint) -> Row:
    return {
        "oid": key.index, "relnamespace": PUBLIC, "relname": key.name, "relkind": "i", "relowner": OWNER,
        "relam": BTREE, "relpersistence": "p", "relnatts": len(key.columns), "relispopulated": True,
        "relreplident": "n", "reltuples": -1.0, "relfilenode": key.index,
    }  # fmt: skip


def _attribute(table: int, number: int, name: str, type_: str, mod: int, required: bool) -> Row:
    of = types()[type_]
    return {
        "attrelid": table, "attname": name, "atttypid": of["oid"], "attstattarget": -1, "attlen": of["typlen"],
        "attnum": number, "attcacheoff": -1, "atttypmod": mod, "attbyval": of["typbyval"], "attalign": of["typalign"],
        "attstorage": of["typstorage"], "attnotnull": required, "attislocal": True, "attcollation": of["typcollation"],
        "attndims": 1 if type_.startswith("_") else 0,
    }  # fmt: skip
