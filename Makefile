# Every target makes the environment it needs; Python 3.10+ and make are enough to start.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

DEV := .venv
OLDEST := .venv-oldest
REFERENCE := .venv-reference
CLIENTS := .venv-clients
ICEBERG := .venv-iceberg
# For the PySpark of requirements/iceberg.txt.
ICEBERG_JAR := org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
JAVA := scripts/with-java
# Most of a small Spark test is one thread's work: two sessions keep two cores busy.
WORKERS ?= 2
# Of make fuzz.
EXAMPLES ?= 20000
FILES ?= 100000
STATEMENTS ?= 500
SPLICED ?= 500
# Tests start hundreds of Python processes, and none of them compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Of make storage: where servers are, and are put.
SERVERS ?= .servers
SEED ?= 0
# Files are tests' order, not the most tests first: the longest tests are few (tests/conftest.py).
# Directories of tests that passed are not kept: they may lie in memory (tests/conftest.py).
PYTEST := -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder \
	-o tmp_path_retention_count=1 -o tmp_path_retention_policy=failed

BENCHES := bench-growth bench-trickle bench-writers bench-store bench-log bench-profile bench-untuned bench-lineitem
.PHONY: bench-streams bench-queries browser docs release-check help demo test test-newest test-oldest check fix fuzz reference differential record simulate simulate-mutants simulate-processes faults catalogs upserts storage cluster clients iceberg connect trials thorough bench $(BENCHES) lock wheel clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: dev-env ## Convert 336,776 flights to Delta, merge corrections, read them back with two other engines (STORE=s3, STORE=hdfs)
	@[ "$(STORE)" != hdfs ] || $(JAVA) scripts/servers $(SERVERS) $(DEV)/bin/python hdfs
	@STORE=$(STORE) SERVERS_BIN=$${SERVERS_BIN:-$(SERVERS)/bin} SERVERS_JARS=$${SERVERS_JARS:-$(SERVERS)/jars} \
		$(JAVA) $(DEV)/bin/python demo/flights.py

# Side by side, since a tenth of two cores is idle while tests of the newest PySpark wait.
test: dev-env oldest-env ## Run all tests on the newest PySpark and the smoke subset on the oldest
	@$(MAKE) --no-print-directory -j2 test-newest test-oldest

# One session is enough beside those of the newest PySpark.
test-oldest: WORKERS = 1

# Without the archive tests only take longer.
test-newest: dev-env
	@[ -f $(DEV)/spark-classes.jsa ] || { echo "Archiving the classes of Spark, so that each JVM starts in half of the time ..."; \
		$(JAVA) $(DEV)/bin/python -m tests.class_archive >/dev/null 2>&1 || true; }
	@$(JAVA) $(DEV)/bin/python $(PYTEST) -m "not reference and not browser and not faults and not storage and not cluster and not upserts and not trials and not clients and not iceberg and not thorough"

# Only the files that have such tests are imported.
test-oldest: oldest-env
	@$(JAVA) $(OLDEST)/bin/python $(PYTEST) -q -m smoke \
		$$(grep -rl --include='*.py' 'pytest\.mark\.smoke' tests)

check: dev-env ## Lint, formatting, types, layers
	@$(DEV)/bin/ruff check .
	@$(DEV)/bin/ruff format --check .
	@$(DEV)/bin/mypy
	@$(DEV)/bin/lint-imports

fix: dev-env ## Apply formatting and the lint fixes that are safe
	@$(DEV)/bin/ruff check --fix .
	@$(DEV)/bin/ruff format .

reference: reference-env ## Compare with delta-spark itself (downloads its JARs)
	@$(JAVA) $(REFERENCE)/bin/python $(PYTEST) -m reference tests/reference \
		--ignore tests/reference/differential

differential: reference-env ## Random statements through delta-spark and puredelta (PUREDELTA_SEEDS=0:60)
	@$(JAVA) $(REFERENCE)/bin/python -m pytest --numprocesses $(WORKERS) -m reference tests/reference/differential

simulate: dev-env ## Interleave writers by seeds, with faults; no row may be lost (PUREDELTA_SEEDS=0:1000, ARGS=...)
	@$(DEV)/bin/python -m simulation $(ARGS)
	@$(DEV)/bin/python -m simulation.catalogs

simulate-processes: dev-env reference-env ## Race real processes of puredelta, delta-rs and delta-spark (PUREDELTA_SEEDS=0:100)
	@PUREDELTA_REFERENCE_PYTHON=$(REFERENCE)/bin/python $(JAVA) $(DEV)/bin/python -m simulation.rivals $(ARGS)

simulate-mutants: dev-env ## Remove six safeties in turn: the simulation must detect each
	@$(DEV)/bin/python -m simulation --mutants $(ARGS)
	@$(DEV)/bin/python -m simulation.catalogs --mutants

record: reference-env ## Record delta-spark's outcomes of new statements in tests/corpus
	@$(JAVA) $(REFERENCE)/bin/python -m tests.reference.record --new

faults: dev-env ## Let every store call, write of data files and frame of a connection fail once; kill drivers at every point (ARGS=...)
	@$(JAVA) $(DEV)/bin/python -m simulation.kills
	@$(JAVA) $(DEV)/bin/python -m simulation.sweep $(ARGS)
	@$(JAVA) $(DEV)/bin/python -m pytest -q -m faults tests

catalogs: dev-env ## Run the suite of catalogs, every recorded statement by name, and eight processes on one table (UC_URL and UC_TOKEN: a real server)
	@PUREDELTA_CATALOG_COMMITS=$${PUREDELTA_CATALOG_COMMITS:-25} $(JAVA) $(DEV)/bin/python -m pytest -q \
		tests/catalogs tests/log/managed tests/spark/catalogs
	@$(DEV)/bin/python -m simulation.catalogs

upserts: dev-env ## Replay 200 random change streams through upsert, sync, scd2 and apply_changes, beside naive models
	@$(JAVA) $(DEV)/bin/python -m pytest -q -m upserts tests/recipes

storage: dev-env ## Run commands and recorded merges on HDFS and S3 (SERVERS=folder of the servers, ARGS=...)
	@$(JAVA) scripts/servers $(SERVERS) $(DEV)/bin/python
	@export SERVERS_BIN=$(SERVERS)/bin SERVERS_JARS=$(SERVERS)/jars && \
		PYSPARK_SUBMIT_ARGS="$$($(DEV)/bin/python -m tests.servers.s3a)" \
		$(JAVA) $(DEV)/bin/python -m pytest -q tests/storage $(ARGS)

cluster: dev-env ## Kill executors of a cluster that shares only an object store (root on Linux; PUREDELTA_RUNS=20)
	@SERVERS_BIN=$${SERVERS_BIN:-$(SERVERS)/bin} $(JAVA) $(DEV)/bin/python -m pytest -q -m cluster tests/cluster

clients: clients-env ## Run a dbt and a sqlmesh project whole, in memory and over Hive's metastore (ARGS=...)
	@$(JAVA) $(CLIENTS)/bin/python -m pytest -q -m clients tests/clients $(ARGS)

iceberg: iceberg-env ## Export tables of all features; pyiceberg, DuckDB and Spark with Iceberg's JAR read each version
	@PYSPARK_SUBMIT_ARGS="--packages $(ICEBERG_JAR) pyspark-shell" \
		$(JAVA) $(ICEBERG)/bin/python -m pytest -q -m "not thorough" tests/iceberg $(ARGS)

connect: dev-env oldest-env ## Clients of the oldest and the newest PySpark beside servers of both: print the matrix
	@$(JAVA) $(DEV)/bin/python -m tests.servers.connect_versions $(OLDEST)/bin/python $(DEV)/bin/python

thorough: dev-env ## Run all recorded statements and generated conditions (make test runs samples)
	@$(JAVA) $(DEV)/bin/python $(PYTEST) -m thorough tests

trials: dev-env ## Dry-run and preview every recorded statement before it is executed: counts and change rows must be equal
	@$(JAVA) $(DEV)/bin/python $(PYTEST) -m trials tests/corpus

fuzz: dev-env ## Mutate logs and Parquet files: each must be refused with a code or read correctly (EXAMPLES=20000 FILES=100000 SPLICED=500 SEED=0)
	@PYTHONPATH=src:. $(DEV)/bin/python -m tests.fuzz --examples $(EXAMPLES) --seed $(SEED)
	@PYTHONPATH=src:. $(DEV)/bin/python -m tests.fuzz.checkpoints --seed $(SEED)
	@PYTHONPATH=src:. $(DEV)/bin/python -m tests.fuzz.damaged --examples $(FILES) --seed $(SEED)
	@PYTHONPATH=src:. $(JAVA) $(DEV)/bin/python -m tests.fuzz.with_spark --examples $(STATEMENTS) --seed $(SEED)
	@PYTHONPATH=src:. $(JAVA) $(DEV)/bin/python -m tests.fuzz.spliced --examples $(SPLICED) --seed $(SEED)

bench: dev-env reference-env ## Measure merges and conversions beside delta-spark and delta-rs (docs/performance.md)
	@$(JAVA) $(DEV)/bin/python -m benchmarks

bench-growth: ## Measure merges into ten times the rows, and into a hundred times the files
bench-trickle: ## Measure a hundred small merges into one table
bench-log: ## Open, prune and append to a log of a million files, with each engine
bench-writers: ## Measure eight processes that merge into one table
bench-store: ## Measure merges and conversions in a bucket, with 30 ms a request
bench-profile: ## Profile the slowest workloads
bench-untuned: ## Measure merges, updates and deletes that nobody tuned, beside delta-spark
bench-lineitem: ## Measure a chain of merges into lineitem of TPC-H (PUREDELTA_BENCH_SCALE=1, 10)
$(BENCHES): dev-env reference-env
	@SERVERS_BIN=$${SERVERS_BIN:-$(SERVERS)/bin} $(JAVA) $(DEV)/bin/python -m benchmarks.$(patsubst log,log_scale,$(@:bench-%=%))

bench-streams: reference-env ## Measure streams beside delta-spark: five million rows into a table, and merged batch by batch
	@$(JAVA) $(REFERENCE)/bin/python -m benchmarks.streams

bench-queries: reference-env ## Measure queries beside delta-spark: ten of the kind of TPC-DS, and one file of 10,000
	@$(JAVA) $(REFERENCE)/bin/python -m benchmarks.queries

browser: dev-env ## Drive the report in headless Chromium (CHROMIUM=/usr/bin/chromium)
	@$(DEV)/bin/python -m pytest -q -m browser tests/inspection

docs: docs-env ## Build the documentation into build/site; links are checked, a warning is an error
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict 2>&1 | { grep -v '^INFO' || true; }
	@echo build/site/index.html

release-check: release-env ## Build wheel and sdist, check them, their types from outside, and the demo from the wheel
	@$(JAVA) scripts/release-check

wheel: dev-env ## Build the wheel into dist/
	@$(DEV)/bin/pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist

lock: ## Resolve the lock files in requirements/ again
	@scripts/lock

clean: ## Remove environments, caches and outputs
	@rm -rf $(DEV) $(OLDEST) $(REFERENCE) $(CLIENTS) $(ICEBERG) .venv-lock .venv-docs .venv-release .servers build dist demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: dev-env oldest-env reference-env clients-env iceberg-env docs-env release-env
docs-env:
	@scripts/tools .venv-docs requirements/docs.txt
release-env:
	@scripts/tools .venv-release requirements/release.txt
dev-env:
	@scripts/bootstrap $(DEV) requirements/dev.txt
oldest-env:
	@scripts/bootstrap $(OLDEST) requirements/oldest.txt
reference-env:
	@scripts/bootstrap $(REFERENCE) requirements/reference.txt
clients-env:
	@scripts/bootstrap $(CLIENTS) requirements/clients.txt
iceberg-env:
	@scripts/bootstrap $(ICEBERG) requirements/iceberg.txt
