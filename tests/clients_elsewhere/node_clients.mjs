// Drivers of Node at a server. Standard input: {client, url, statements: [[sql, parameters], …]}; standard output: for
// each statement {rows, said, refused, state, place}. A parameter {date: "2024-01-31"} is a Date.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(process.env.NODE_MODULES + "/");
const { client, url, statements } = JSON.parse(readFileSync(0, "utf8"));
const given = (parameters) => parameters.map((p) => (p && p.date ? new Date(p.date + "T00:00:00Z") : p));
const shown = (value) => (value === null ? "" : value instanceof Date ? value.toISOString() : String(value));
const texts = (rows) => rows.map((row) => Object.values(row).map(shown));
const wrong = (error) => {
  const e = error.original ?? error;
  if (!e.code) throw error;
  return { rows: [], refused: e.message.replace(/^.* - (?=\[DP)/s, ""), state: e.code, place: Number(e.position) || null };
};

const clients = {
  async pg(told) {
    const { Client } = require("pg");
    const connection = new Client({ connectionString: url });
    await connection.connect();
    connection.on("notice", (notice) => told.push(notice.message));
    return [async (sql, values) => (await connection.query(sql, values)).rows, () => connection.end()];
  },
  async postgres(told) {
    const sql = require("postgres")(url, { max: 1, onnotice: (notice) => told.push(notice.message) });
    return [async (text, values) => [...(await sql.unsafe(text, values))], () => sql.end()];
  },
  async knex() {
    const knex = require("knex")({ client: "pg", connection: url });
    const own = (text) => text.replace(/\$\d+/g, "?");
    return [async (text, values) => (await knex.raw(own(text), values)).rows, () => knex.destroy()];
  },
  async sequelize() {
    const { Sequelize, QueryTypes } = require("sequelize");
    const sequelize = new Sequelize(url, { logging: false });
    const options = (bind) => ({ type: QueryTypes.SELECT, ...(bind.length ? { bind } : {}) });
    return [(text, values) => sequelize.query(text, options(values)), () => sequelize.close()];
  },
};

const told = [];
const [ask, end] = await clients[client](told);
const seen = [];
for (const [sql, parameters] of statements) {
  let one;
  try {
    one = { rows: texts(await ask(sql, given(parameters))) };
  } catch (error) {
    one = wrong(error);
  }
  seen.push({ said: told.splice(0).join("\n"), ...one });
}
await end();
console.log(JSON.stringify(seen));
