"""The policy file as written: every key there is, with the documentation that editors show.

These models check form only (keys, scalars, short forms); what needs two places at once is in
`policy/resolve/policy.py`. The docstring under a key is its description in the JSON Schema and in
docs/reference/policy.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dpsql.policy.file.scalars import (
    Call,
    Count,
    Day,
    Flag,
    FlagOrAuto,
    Label,
    Moments,
    Name,
    Names,
    NotNegative,
    Pair,
    Positive,
    Probability,
    Span,
    Text,
    Values,
    Version,
    Yes,
    bounds_form,
    one_of,
    only_assumed,
    or_empty,
    short_form,
    word_form,
)

Neighbours = Annotated[Literal["add_remove", "replace_one"], one_of("add_remove", "replace_one")]
Accountant = Annotated[Literal["pure_dp", "approx_dp", "zcdp"], one_of("pure_dp", "approx_dp", "zcdp")]
Assumed = Annotated[Literal["assume"], only_assumed()]
Enforce = Annotated[Literal["assume", "truncate", "drop"], one_of("assume", "truncate", "drop")]
PrivateKeys = Annotated[Literal["unlisted", "auto"], one_of("unlisted", "auto")]
Search = Annotated[Literal["auto", "allow", "refuse"], one_of("auto", "allow", "refuse")]
Every = Annotated[Literal["day", "week", "month"], one_of("day", "week", "month")]
Noise = Annotated[Literal["exact", "opendp"], one_of("exact", "opendp")]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, arbitrary_types_allowed=True)


class PrivacyFile(_File):
    """How neighbouring databases differ and how losses add up."""

    neighbours: Neighbours = "add_remove"
    """add_remove: units are added or removed; replace_one: units are replaced. A table may say otherwise."""
    accountant: Accountant = "approx_dp"
    """pure_dp: ε adds up; approx_dp: ε and δ add up; zcdp: ρ adds up, budgets are in `rho`."""


class UnitFile(_File):
    """A privacy unit: whom the guarantee protects."""

    table: Text | None = None
    """The table where the unit's ids live, if there is one."""
    key: Text | None = None
    """The column of that table that holds the id."""


class PathStepFile(_File):
    """One foreign key on the way to the table that holds the unit's id."""

    column: Text | None = None
    """The referring column of this table (or `columns` for several)."""
    columns: Names | None = None
    """The referring columns."""
    references: Text
    """The referenced key: `visits(visit_id)`. It must be promised unique there."""


class TableUnitFile(_File):
    """Whose rows these are: `{rows: k}`, `{column: id}` or `{path: [...]}`."""

    rows: Count | None = None
    """Neighbouring databases differ in up to this many rows of the table."""
    column: Text | None = None
    """The column that holds the id of the unit that owns the row."""
    path: Annotated[list[PathStepFile], Field(min_length=1)] | None = None
    """Foreign keys that lead to the table with the id."""
    of: Name | None = None
    """The unit's name; tables with one name change together."""
    as_: Text | None = Field(default=None, alias="as")
    """The type of the unit's ids where `column` has another: of texts that are UUIDs `{column: id, as: uuid}`. Rows
    whose id is none are nobody's."""
    per: Literal["period"] | None = None
    """The unit is one id in one period of a table that grows: `{of: rider_day, column: rider, per: period}`. Limits
    count per period then."""
    neighbours: Neighbours | None = None
    """Overrides `privacy.neighbours` for this unit."""


class KeyFile(_File):
    """A column set in which no two rows agree."""

    columns: Names
    """The columns of the key."""
    enforce: Enforce = "assume"
    """assume: a promise; truncate: the plan keeps one row per key; drop: it leaves out keys with several rows."""


class ForeignKeyFile(_File):
    """Columns whose values occur in another table's key."""

    columns: Names
    """The referring columns."""
    references: Text
    """The referenced key: `patients(patient_id)`."""
    enforce: Assumed = "assume"
    """Always a promise: no noise rests on it, and no row is left out for it."""


class FrequencyFile(_File):
    """How many rows may agree on some columns."""

    columns: Names
    """The columns."""
    rows: Count
    """The most rows that agree on them."""
    enforce: Enforce | None = None
    """truncate (default): the plan keeps this many per value; drop: values with more are left out; assume: promised."""


class RowLimitFile(_File):
    """How many rows one unit may have."""

    rows: Count | None = None
    """The most rows of one unit."""
    enforce: Enforce | None = None
    """truncate (default): the plan bounds what a unit contributes; assume: a promise about the data."""
    search: Yes | None = None
    """true: a quarter of each query's ε finds the number, instead of `rows`."""
    at_most: Count | None = None
    """With search: the most rows it may find, and what holds where it finds nothing."""
    nobody_has_more: Yes | None = None
    """true: a promise that no unit has more than `rows`, so that the limit takes nothing away. Only intervals rest on
    it; the limit is enforced all the same."""


class BoundsFile(_File):
    """Which values may occur."""

    ends: Pair | None = None
    """[lower, upper]; the same as the list alone."""
    search: Yes | None = None
    """true: a part of each query's ε finds the bounds, instead of `ends`."""
    within: Pair | None = None
    """With search: [lower, upper], which what is found does not leave."""


class GrowsFile(_File):
    """How rows are added to a table: each is of one period, and periods are read once they are closed."""

    by: Text
    """The DATE column that says of which period a row is. A row that was read keeps its period: that is a promise."""
    every: Every
    """How long a period is; weeks begin on Monday."""
    from_: Day = Field(alias="from")
    """The first day of the first period. Nothing before it is read."""
    keep: Count | None = None
    """Nothing older than so many closed periods is read, so that older rows may be deleted. Default: all are."""


class SizeFile(_File):
    """The table's size is public."""

    exact: Count
    """The exact number of rows."""


class DomainFile(_File):
    """The public list of values that a GROUP BY on the column releases."""

    values: Values | None = None
    """The values, in the order of release."""
    null: Flag | None = None
    """Is NULL a key too? Default: the column's nullability."""
    table: Text | None = None
    """A public table whose column holds the values."""
    column: Text | None = None
    """The column of that table."""


Key = Annotated[KeyFile, short_form(list, tuple, str, to="columns", schema=Names | KeyFile)]
RowLimit = Annotated[
    RowLimitFile, short_form(int, to="rows", schema=Count | Literal["search"] | RowLimitFile), word_form("search")
]
Bounds = Annotated[
    BoundsFile, BeforeValidator(bounds_form, json_schema_input_type=Pair | Literal["search"] | BoundsFile)
]
Domain = Annotated[DomainFile, short_form(list, tuple, to="values", schema=Values | DomainFile)]


class ColumnFile(_File):
    """A column that queries may use. A column that is not listed does not exist."""

    type: Text | None = None
    """The SQL type: bigint, double, varchar, decimal(18,2), … Needed by `dpsql check`; else read from the data."""
    bounds: Bounds | None = None
    """[lower, upper]: values are clipped to it before they are summed; null leaves an end open. search, or
    {search: true, within: [lower, upper]}: a part of each query's ε finds them."""
    nullable: Flag | None = None
    """May the column be NULL? `false` is a promise. Default: true, false for primary keys."""
    domain: Domain | None = None
    """The public list of group keys: [a, b], {values: [a, b], null: true} or {table: t, column: c}."""
    max_length: Count | None = None
    """For lists: the most elements that UNNEST uses."""
    from_: Text | None = Field(default=None, alias="from")
    """What it is made of: another column, a field `address.city`, a text in JSON `profile ->> '$.city'`, a time
    `seen AT TIME ZONE 'Europe/Berlin'`, or an expression `lower(mail)`; then of `type`, NULL where it cannot be."""
    resolution: Positive | None = None
    """For doubles: the smallest difference that counts where bounds or limits are searched. Default: 2^-20."""


class CarryFile(_File):
    """A table whose columns stand beside each row of a copy. Short: its name."""

    table: Text
    """The carried table: a public one, or one of the same unit."""
    by: Names | None = None
    """The columns that name its key, where several do: {table: nation, by: [c_nationkey]}."""
    columns: Names | None = None
    """Those that are wanted beside its key; all, if left out."""


Carry = Annotated[CarryFile, short_form(str, to="table", schema=Text | CarryFile)]


class TableFile(_File):
    """A table that queries may use. It is private unless it says `public: true`."""

    public: Flag = False
    """true: the table holds nothing about any unit and may be read freely."""
    source: Call | None = None
    """read_parquet('…'), read_csv('…') or read_json('…') with literal arguments; paths are relative to the policy. With
    a server: its place there, schema.table, if that is not its name."""
    unit: TableUnitFile | None = None
    """Whose rows these are."""
    primary_key: Key | None = None
    """The primary key: a promise unless enforced; its columns are not NULL."""
    unique: list[Key] = []
    """Column sets in which no two rows agree: [[code], [name, town]]."""
    foreign_keys: list[ForeignKeyFile] = []
    """Columns whose values occur in another table's key."""
    max_frequency: list[FrequencyFile] = []
    """How many rows may agree on some columns."""
    max_rows_per_unit: RowLimit | None = None
    """The most rows of one unit: enforced by the plan unless {rows: n, enforce: assume}. search, or
    {search: true, at_most: n}: a quarter of each query's ε finds it."""
    max_groups_per_unit: Count | None = None
    """The most groups of one GROUP BY that one unit contributes to; enforced by the plan."""
    max_rows_per_group: Count | None = None
    """The most rows that one unit contributes to one group; enforced by the plan."""
    belongs_to_unit: Names | None = None
    """Columns each of whose values is one unit's own: the number of an order. A promise, on which no noise rests."""
    size: SizeFile | None = None
    """The public size; only for {rows: k} with replace_one."""
    prepared: FlagOrAuto | None = None
    """true: queries read the copy that `dpsql prepare` makes, in which no unit has more than max_rows_per_unit rows;
    auto: where there is one of the data as it is. All tables of a unit say the same."""
    carries: list[Carry] | None = None
    """Tables whose columns the copy carries beside each row, so that a query that joins them reads one table: public
    ones, or those of the same unit, each found by a declared key, perhaps of one carried before it."""
    grows: GrowsFile | None = None
    """How rows are added: {by: day, every: day, from: 2026-01-01}. Queries read what `dpsql close` has closed."""
    columns: dict[str, Annotated[ColumnFile, or_empty(ColumnFile)]] = {}
    """The columns; a public table may leave them to the data."""


class DefaultsFile(_File):
    """What holds when a query says nothing; a query's own settings win."""

    epsilon: Positive | None = None
    """ε of a query that gives none."""
    delta: Probability | None = None
    """δ of a query that needs one and gives none."""
    max_keys: Count = 100_000
    """The most public key combinations one release may have."""
    min_units: Count = 1
    """The least number of units behind a private key."""
    allow_dearer: Flag = False
    """true: analysts receive stored answers of others also where these cost more than what is asked."""
    private_keys: PrivateKeys | None = None
    """unlisted (default): group keys are private where no public list is known; auto: also where it has more than
    max_keys combinations, which are refused otherwise. Costs a δ and shows no empty groups."""


class LossFile(_File):
    """How much may be spent: epsilon (and delta), or rho (and delta) under zcdp."""

    epsilon: NotNegative | None = None
    """ε in total."""
    delta: Probability | None = None
    """δ in total; left out: 0, so no query that needs δ."""
    rho: NotNegative | None = None
    """ρ in total, instead of epsilon, under zcdp."""


class PerQueryFile(_File):
    """The most that one query may spend; what is left out is not limited."""

    max_epsilon: Positive | None = None
    """ε of one query."""
    max_delta: Probability | None = None
    """δ of one query."""
    max_rho: Positive | None = None
    """ρ of one query, under zcdp."""


class AnalystFile(LossFile):
    """What one analyst may spend of each unit."""

    per_query: PerQueryFile | None = None
    """Limits of one query."""


class BudgetsFile(_File):
    """How much may ever be spent of each privacy unit. Never reset."""

    total: LossFile | None = None
    """Of each unit, over all analysts."""
    each_period: LossFile | None = None
    """In place of `total` for rows of a table that grows: of the rows of each of its periods."""
    units: dict[str, LossFile] = {}
    """Overrides `total`, or `each_period`, for one unit."""
    analysts: dict[str, AnalystFile] = {}
    """Per analyst; "*" is the shared account of everyone not named."""


class FailuresFile(_File):
    """How many statements may fail in the engine before private queries are refused (DP416). No part of the policy's
    hash."""

    most: Count | None = None
    """Failures of one account that stop its private queries. Default: 10."""
    per: Span | None = None
    """How long a failure counts: 30 days, 12 hours. Default: 30 days."""
    in_total: Count | None = None
    """Failures of all accounts together that stop everybody's. Default: three times `most`, which nobody reaches
    alone."""


class ServeFile(_File):
    """How `dpsql serve` answers. Nothing here is part of the policy's hash: a change loses no stored answer, and frees
    no budget."""

    answers_at: Moments | None = None
    """When answers that read private rows may leave, counted from the statement's beginning: [0.2s, 1s, 5s, 30s].
    Whatever has not ended at the last is stopped, and paid. Default: [5s]. Each further moment tells more about how
    long a query took."""
    workers: Count | None = None
    """Processes that run statements. Default: 1."""
    threads: Count | None = None
    """Threads of each worker's engine."""
    memory: Text | None = None
    """Memory of each worker's engine, e.g. 2GB."""
    connections: Count | None = None
    """The most connections at one time. Default: 100."""
    connections_per_user: Count | None = None
    """The most connections of one login. Default: 10."""
    queue: Count | None = None
    """The most statements that wait for a worker. Default: 20."""
    rows: Count | None = None
    """The most rows of one answer. Default: 100,000."""


class PolicyFile(_File):
    """A dpsql privacy policy: tables, privacy units, bounds and budgets."""

    version: Version
    """The version of this format: 1."""
    name: Name
    """A short name; the ledger is called after it. `<name>.public.` and `public.` may stand before a table's name."""
    draft: Flag | None = None
    """true: decisions are open, and nothing is answered but from made-up rows (DP016); no part of the policy's hash."""
    data_version: Label | None = None
    """Changed by the custodian with the data: stored answers of another version are not served. The budget stays."""
    database: Text | None = None
    """The DuckDB file that holds the tables without `source`, relative to the policy; or a PostgreSQL server:
    postgresql://reader@host/database, or postgresql://?service=name; or Spark over Connect: sc://host:15002. No
    password and no token stands here."""
    prepared_at: Text | None = None
    """The folder of a cluster where `dpsql prepare` writes copies of tables that say `prepared`, s3a://bucket/folder.
    Other copies stand beside the policy."""
    privacy: Annotated[PrivacyFile, or_empty(PrivacyFile)] = PrivacyFile()
    """How neighbouring databases differ and how losses add up."""
    units: dict[str, Annotated[UnitFile, or_empty(UnitFile)]] = {}
    """The privacy units that are ids."""
    former_units: dict[str, Text | None] | None = None
    """Units that had another name: `{old: new}`, or `{old: null}` for one that is gone with its tables."""
    tables: dict[str, Annotated[TableFile, or_empty(TableFile)]]
    """The tables; one that is not listed does not exist."""
    defaults: Annotated[DefaultsFile, or_empty(DefaultsFile)] = DefaultsFile()
    """What holds when a query says nothing."""
    ledger: Text | None = None
    """The ledger file; default <name>.ledger.sqlite beside the policy. `postgresql://…`: a database of its own, for
    many gateways. `:memory:`: forgotten with each session."""
    ledger_head: Text | None = None
    """Where the ledger's last hash is kept; default in the user's state directory."""
    search: Search | None = None
    """allow (default): a query may have a part of its own ε find limits and bounds; auto: it has, where none are
    declared, and where 16 rows or more may count, unless it says otherwise; refuse: it may not (DP213)."""
    zone: Text | None = None
    """Whose clock shows a TIMESTAMP WITH TIME ZONE where a query asks for its day or hour: `Europe/Berlin`. Default:
    UTC."""
    noise: Noise = "exact"
    """exact: dpsql's own sampler; opendp: OpenDP's."""
    budgets: BudgetsFile | None = None
    """How much may ever be spent."""
    failures: FailuresFile | None = None
    """How many statements may fail in the engine; no part of the policy's hash."""
    serve: ServeFile | None = None
    """How `dpsql serve` answers; no part of the policy's hash."""
