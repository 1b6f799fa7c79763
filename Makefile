# Needs make and a Python ≥ 3.11; everything else goes into .venv, made on first use.
#
#   make demo      build a small database in demo/ and run the main job on it
#   make serve     answer analysts who connect to that database as to PostgreSQL
#   make test      the quick tests                make test-rest  the others, of tests/deep; make test-all is both
#   make test-engines  those of other engines than DuckDB, each in an environment below .venv-engines/; part of test-rest
#   make test-spark  all of those of Spark, of which test-engines has a short part
#   make spark-server  a Spark Connect server on this machine, for trying, until Ctrl-C
#   make test-clients  psql, JDBC, ODBC and drivers of Python at a server of dpsql; part of test-rest, too. What has to
#                  come from apt and is not there is left out, by name
#   make exhaustive  the same over many more cases: before a release, and after a change of a rule
#   make coverage  of the trusted core            make check     ruff, mypy, import-linter
#   make format    rewrite the files as `check` wants them
#   make bench     the benchmarks                 make generate  rewrite generated files
#   make soak      fifty connections at a server for ten minutes, with workers that are killed: nothing may be lost
#   make docs      the documentation, as a site in site/           make serve-docs  the same at localhost:8000
#   make release-check  build twice, compare, check, and answer with the wheel in new environments: dist/ is the release
#   make mutants   break the trusted core on purpose: a test has to notice each time
#   make proofs    the stability rules, read by Coq 8.16, and what plans claim compared with them; skipped by name
#                  where there is none
#   make fuzz      throw changed inputs at policies, SQL, flags, ledgers and stored answers, a minute each
#   make clean     remove everything made here

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo serve test test-rest test-engines test-spark spark-server test-clients test-all exhaustive coverage check format bench mutants proofs fuzz soak generate docs serve-docs site-of-version release-check clean

VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PYTEST_ARGS ?=
MUTANTS_ARGS ?=
PROOFS_ARGS ?=
FUZZ_ARGS ?=
BENCH_ARGS ?=
SOAK_ARGS ?=
RELEASE_ARGS ?=
SITE_ARGS ?=

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

# Three stages, so that `make demo` and `make docs` do not wait for the development tools.
$(BIN)/python:
	@for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found="$$candidate"; break; fi; \
	done; \
	if [ -z "$$found" ]; then echo "make: no Python ≥ 3.11 found; give one with  make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	echo "making $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv $(VENV) || { rm -rf $(VENV); echo "make: $$found has no venv module (on Debian: apt install python3-venv)" >&2; exit 1; }

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing dpsql into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	@echo "installing dpsql and what its documentation needs into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "installing dpsql and its development tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-docs

demo: $(VENV)/.installed
	@$(BIN)/dpsql demo demo </dev/null
	@echo; echo "dpsql is in $(BIN); to use it by name:  source $(BIN)/activate"

# The demo's clinic behind a port, for ana, with a password for this time. A query of hers costs ε 0.05 unless it says
# another amount, so that her budget lasts for an evening. PORT=5433 where there is a PostgreSQL. Where
# dpsql's extra `server` is installed, its consoles as well.
PORT ?= 5432
HTTP_PORT ?= 8080
CUSTODIAN_PORT ?= 8081
serve: $(VENV)/.installed
	@test -f demo/clinic.yaml || $(BIN)/dpsql demo demo </dev/null >/dev/null
	@password=$$($(BIN)/python -c 'import secrets; print(secrets.token_hex(8))'); \
	umask 077 && rm -f demo/users.yaml && users=$$(echo "$$password" | $(BIN)/dpsql user add ana) && \
	printf 'users:\n%s\n    defaults: {epsilon: 0.05}\n' "$$users" >demo/users.yaml && \
	address="postgresql://ana:$$password@127.0.0.1:$(PORT)/clinic" && \
	printf 'Ctrl-C ends it. Connect with\n  psql "%s"\n  psycopg.connect("%s")\n' "$$address" "$$address" && \
	if $(BIN)/python -c 'import markdown_it, starlette, uvicorn' 2>/dev/null; then \
	    echo "$$password" | $(BIN)/dpsql user add custodian --role custodian >>demo/users.yaml && \
	    printf 'or sign in below: at the first console as ana, at the second as custodian, password %s\n' "$$password"; \
	    consoles="--http 127.0.0.1:$(HTTP_PORT) --custodian-http 127.0.0.1:$(CUSTODIAN_PORT)"; \
	else echo "for a console in the browser:  $(BIN)/pip install -e '.[server]'"; fi; \
	exec $(BIN)/dpsql serve demo/clinic.yaml --port $(PORT) $$consoles --audit-log demo/audit.jsonl

# Without compiled files, each process that a test starts would compile dpsql anew, and each worker all of the tests.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := $(BIN)/python -m pytest -q --dist worksteal

test: $(VENV)/.installed-dev
	$(PYTEST) -n $(WORKERS) --ignore=tests/deep --ignore=tests/engines_elsewhere --ignore=tests/clients_elsewhere $(PYTEST_ARGS)

# Many of these wait, for processes, terminals and locks: one worker more has something to do then. Those elsewhere wait
# more, for servers and browsers: they run beside, and their output comes first. Without job control (set -m), a shell
# lets what runs beside ignore Ctrl-C, and tests of it would fail.
REST_WORKERS ?= $(shell expr $(WORKERS) + 1)
REST_LOG := .venv-engines/deep.log
test-rest: $(VENV)/.installed-dev
	@mkdir -p .venv-engines; set -m; \
	$(PYTEST) -n $(REST_WORKERS) tests/deep -m "not exhaustive" $(PYTEST_ARGS) >$(REST_LOG) 2>&1 & deep=$$!; \
	trap 'kill $$deep; exit 130' INT TERM; \
	$(MAKE) test-engines test-clients; elsewhere=$$?; \
	tail -n +1 -f --pid=$$deep $(REST_LOG) 2>/dev/null; shown=$$?; \
	wait $$deep; status=$$?; \
	[ $$shown -eq 0 ] || cat $(REST_LOG); \
	[ $$status -eq 0 ] && exit $$elsewhere

# Where an engine cannot be had, its tests are skipped and say why; DPSQL_ENGINES=required makes that a failure.
# Of arguments that choose none of these tests nothing is run, which pytest calls 5.
test-engines: .venv-engines/postgres/.installed .venv-engines/spark/.installed .venv-engines/spark-server/.installed
	PATH="$(abspath $(BIN)):$$PATH" .venv-engines/postgres/bin/python -m pytest -q --dist loadfile -n $(WORKERS) \
	    tests/engines_elsewhere/postgres -m "not exhaustive" $(PYTEST_ARGS) || [ $$? -eq 5 -a -n "$(PYTEST_ARGS)" ]
	$(SPARK_PYTEST) -m "not long_on_spark" $(PYTEST_ARGS) || [ $$? -eq 5 -a -n "$(PYTEST_ARGS)" ]

# One process, which has one cluster: its two tasks are all that two processors do.
SPARK_PYTEST := PATH="$(abspath $(BIN)):$$PATH" .venv-engines/spark/bin/python -m pytest -q -p no:xdist tests/engines_elsewhere/spark
test-spark: .venv-engines/spark/.installed .venv-engines/spark-server/.installed
	$(SPARK_PYTEST) $(PYTEST_ARGS)

# At port SPARK_PORT; 0 takes any that is free.
SPARK_PORT ?= 15002
spark-server: .venv-engines/spark/.installed .venv-engines/spark-server/.installed
	@exec .venv-engines/spark/bin/python -W ignore -m tests.engines_elsewhere.spark.servers $(SPARK_PORT)

test-clients: .venv-engines/clients/.installed .venv-engines/tools/.installed
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	    echo "no Chromium, so the consoles are not looked at in one; on Debian:  apt-get install chromium"
	PATH="$(abspath $(BIN)):$$PATH" .venv-engines/clients/bin/python -m pytest -q tests/clients_elsewhere $(PYTEST_ARGS) \
	    || [ $$? -eq 5 -a -n "$(PYTEST_ARGS)" ]

.venv-engines/%/.installed: pyproject.toml tests/engines_elsewhere/environment.py | $(VENV)/.installed-dev
	@echo "making .venv-engines/$*"
	@$(BIN)/python -m tests.engines_elsewhere.environment $*
	@touch $@

# Half a gigabyte: without it, the tests of Spark are skipped and say why, and the next run tries again.
.venv-engines/spark-server/.installed: tests/engines_elsewhere/environment.py | $(VENV)/.installed-dev
	@echo "making .venv-engines/spark-server"
	@{ $(BIN)/python -m tests.engines_elsewhere.environment spark-server && touch $@; } || [ "$$DPSQL_ENGINES" != required ]

# ibis and dbt, half a gigabyte: without it, they are left out by name, and the next run tries again.
.venv-engines/tools/.installed: tests/engines_elsewhere/environment.py | $(VENV)/.installed-dev
	@echo "making .venv-engines/tools"
	@$(BIN)/python -m tests.engines_elsewhere.environment tools && touch $@ || echo "ibis and dbt are left out"

test-all: test test-rest

exhaustive: $(VENV)/.installed-dev .venv-engines/postgres/.installed
	$(PYTEST) -n $(WORKERS) tests/deep -m exhaustive $(PYTEST_ARGS)
	.venv-engines/postgres/bin/python -m pytest -q -n $(WORKERS) tests/engines_elsewhere/postgres -m exhaustive $(PYTEST_ARGS)

coverage: $(VENV)/.installed-dev
	$(PYTEST) -n $(WORKERS) --ignore=tests/engines_elsewhere --ignore=tests/clients_elsewhere -m "not exhaustive and not processes" --cov --cov-report=term $(PYTEST_ARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

mutants: $(VENV)/.installed-dev
	$(BIN)/python -m tests.mutants.run --workers $(WORKERS) $(MUTANTS_ARGS)

proofs: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.proofs.run $(PROOFS_ARGS)

fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.deep.fuzz $(FUZZ_ARGS)

soak: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.soak $(SOAK_ARGS)

generate: $(VENV)/.installed-dev
	$(BIN)/python -m docs.generate

docs: $(VENV)/.installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html"

serve-docs: $(VENV)/.installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

# The site as it is published: each version in a folder of its own on the branch gh-pages, `latest` beside them.
VERSION = $(shell sed -n 's/^__version__ = "\([0-9]*\.[0-9]*\).*/\1/p' dpsql/__init__.py)
site-of-version: $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[site]'
	@PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 mike deploy --update-aliases $(SITE_ARGS) $(VERSION) latest
	@PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 mike set-default $(SITE_ARGS) latest

release-check: $(BIN)/python
	@$(BIN)/python .ci/release.py $(RELEASE_ARGS)

clean:
	rm -rf $(VENV) .venv-engines .proofs site build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov demo benchmarks/cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
