# Plain `make` prints this help. Everything that is built or started lives in .venv/, build/ and .local/.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
ARTIFACTS := .local/.artifacts-ready
PACKAGES := agents schemas connectors spark_sink local cli
SCENARIOS := tests/e2e/scenarios
# Keeps the project's folder off sys.path: `agents` must never be importable beside `shardmerge.agents`.
export PYTHONSAFEPATH := 1

.PHONY: help
help: ## This help
	@echo "shardmerge: many MySQL shards, one table, while every shard changes its schema at its own time"; echo
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-22s %s\n", $$1, $$2}'
	@echo; echo "Needs Python 3.11+ (with venv) and Java 17+; everything else is fetched and checked."

# --- set-up ---------------------------------------------------------------------------------------

.PHONY: setup
setup: $(READY) $(ARTIFACTS) ## Virtual environment from requirements.lock, artifacts of the local stack

# setup.py compiles the C code.
$(READY): requirements.lock pyproject.toml setup.py $(wildcard spark_sink/targets/mysql/lines/*.[ch])
	@python=$$(bash .ci/python) && \
	if [ ! -x $(PY) ]; then echo "virtual environment: $(VENV), from $$python"; "$$python" -m venv $(VENV); fi
	@echo "packages: requirements.lock (a few minutes the first time)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

.PHONY: java
java:
	@bash .ci/java

$(ARTIFACTS): $(READY) $(wildcard local/install/artifacts.py local/install/*.xml) | java
	@mkdir -p $(@D)
	@$(PY) -m shardmerge.local.install.artifacts
	@touch $@

# No TiDB comes as a package that could be fetched and checked: it is built, where Go is installed.
TIDB_SERVER := .local/tidb/tidb-server

.PHONY: tidb
tidb: $(TIDB_SERVER) ## A TiDB server for test-tidb, built from source (Go 1.25 or newer; once, 10 to 50 minutes)

$(TIDB_SERVER): tests/tidb/server/go.mod tests/tidb/server/go.sum tests/tidb/server/build.sh
	@bash tests/tidb/server/build.sh $(@D)

.PHONY: artifacts
artifacts: $(ARTIFACTS) ## Kafka, Debezium, MySQL and Spark's jars for the local stack

# --- use ------------------------------------------------------------------------------------------

.PHONY: demo up down status
demo: $(ARTIFACTS) | java ## The three-shard example, live; KEEP=1 leaves it running, CHAOS=1 kills parts meanwhile
	@$(PY) -m shardmerge.cli.main demo $(if $(filter-out 0,$(KEEP)),--keep) $(if $(filter-out 0,$(CHAOS)),--chaos)

up: $(ARTIFACTS) | java ## Start the same stack to play with by hand
	@$(PY) -m shardmerge.cli.main up

down: $(READY) ## Stop it
	@$(PY) -m shardmerge.cli.main down

status: $(READY) ## What runs, and what it is doing
	@$(PY) -m shardmerge.cli.main status

# --- checks and tests -----------------------------------------------------------------------------

# Beside the one of requirements.lock; levels of tests/levels.py.
SPARKS := $(patsubst tests/sparks/%.txt,spark-%,$(sort $(wildcard tests/sparks/*.txt)))

.PHONY: test test-all check types links unit wheel integration e2e scenarios
# The longest of a queue first, and first what waits for moments: its last ones run beside the whole lines.
test: $(ARTIFACTS) | java ## Each rule once, the real stack included; closes with 'N passed, N failed' (CASES=DIR: more scenarios)
	@CASES='$(CASES)' PYTHONPATH=. $(PY) -m tests.levels connect agents secure targets mysql loads $(firstword $(SPARKS)) \
		check wheel laws docs chart integration e2e scenarios

test-all: $(ARTIFACTS) | java ## The same with every server, layout and way, and the pages in a browser: before a release (needs chromium)
	@SHARDMERGE_TESTS=all CASES='$(CASES)' PYTHONPATH=. $(PY) -m tests.levels connect agents secure targets mysql sources \
		loads moves cluster pages proxy $(SPARKS) check wheel laws docs chart integration e2e scenarios

check: $(READY) links ## Lint, format, types, import direction, text files
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) tests/text_files.py
	PYTHONPATH=build/pkgroot $(VENV)/bin/lint-imports --no-cache
	$(MAKE) --no-print-directory types

types: $(READY) links ## mypy --strict, the folders under their installed name; then tests, docs and benchmarks
	$(VENV)/bin/mypy $(foreach p,$(PACKAGES),-p shardmerge.$(p))
	MYPYPATH=build/pkgroot $(VENV)/bin/mypy -p tests -p docs -p benchmarks

# mypy and import-linter cannot see through setuptools' editable hook: they get the tree as links.
links:
	@mkdir -p build/pkgroot/shardmerge
	@for p in $(PACKAGES); do ln -sfn ../../../$$p build/pkgroot/shardmerge/$$p; done
	@for p in tests docs benchmarks; do ln -sfn ../../$$p build/pkgroot/$$p; done

unit: $(READY) ## Unit, property and golden tests: no network, no server
	$(PY) -m pytest $(ARGS)

wheel: $(READY) ## Build the wheel, install it in a clean environment, run the unit level against it
	@PYTHONPATH=. $(PY) -m tests.levels wheel

integration: $(ARTIFACTS) | java ## One real system per test
	$(PY) -m pytest tests/integration $(ARGS)

e2e: $(ARTIFACTS) | java ## The whole line, with faults
	$(PY) -m pytest tests/e2e $(ARGS)

scenarios: $(ARTIFACTS) | java ## Play DIR (default: our own scenarios) against the whole line
	@PYTHONPATH=. $(PY) -m tests.e2e.runner $(if $(DIR),$(DIR),$(SCENARIOS)) $(ARGS)

.PHONY: test-secure
test-secure: $(ARTIFACTS) | java ## The line with every connection secured, and what it refuses
	@PYTHONPATH=. $(PY) -m tests.levels secure

.PHONY: test-cluster
test-cluster: $(ARTIFACTS) | java ## The sink on a Spark cluster whose parts die (needs root, or namespaces of users)
	@PYTHONPATH=. $(PY) -m tests.levels cluster

.PHONY: test-chart
test-chart: $(ARTIFACTS) | java ## The Helm chart: rendered, and held against the resources' schemas
	@PYTHONPATH=. $(PY) -m tests.levels chart

# A new file needs all of it anew; Go, pip and Ivy keep what they fetched.
build/chart/.ready: $(wildcard tests/go/go.txt tests/chart/*.txt tests/chart/*.xml tests/chart/*_schemas.py tests/chart/schemas.py) \
		$(wildcard tests/chart/java/* tests/chart/tools/* tests/chart/tools/*/*) tests/go_tools.sh $(READY)
	@bash tests/go_tools.sh tests/chart/tools $(@D)/bin
	@rm -rf $(@D)/models $(@D)/wheels $(@D)/java
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile --target $(@D)/models \
		-r tests/chart/models.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile --target $(@D)/java \
		-r tests/chart/java.txt
	@$(PY) -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --dest $(@D)/wheels \
		-r tests/chart/kubernetes.txt
	@PYTHONPATH=. $(PY) -m tests.chart.schemas $(@D)
	@touch $@

.PHONY: test-tidb
# Not part of `make test`: nothing that the project installs brings a TiDB.
test-tidb: $(ARTIFACTS) $(if $(TIDB),,$(TIDB_SERVER)) | java ## What holds of a TiDB (TIDB=USER:PASSWORD@HOST:PORT; else that of `make tidb` is started)
	@PYTHONPATH=. $(PY) -m tests.tidb.suite --tidb '$(TIDB)' --random $(or $(COUNT),20) --seed $(or $(SEED),2000) $(ARGS)

.PHONY: test-sources
test-sources: $(ARTIFACTS) | java ## The contract of sources on every server: MySQL 5.7, 8.0, 9.7, MariaDB 10.11, 11.8
	SHARDMERGE_TESTS=all $(PY) -m pytest tests/sources $(ARGS)

.PHONY: test-service
test-service: $(ARTIFACTS) | java ## The systemd unit on a real systemd in namespaces of its own (needs root)
	$(PY) -m pytest tests/service $(ARGS)

.PHONY: test-monitoring
test-monitoring: $(ARTIFACTS) | java ## Alerts of agents and connectors on a real Prometheus, and the JMX exporter on a real Connect
	$(PY) -m pytest tests/monitoring $(ARGS)

.PHONY: test-pages
# Playwright drives the system's chromium: it fetches no browser.
test-pages: $(ARTIFACTS) build/pages/.installed build/pages-api/.installed | java ## The pages in a real browser with axe-core, and schemathesis against /api (needs chromium)
	PYTHONPATH=build/pages $(PY) -m pytest tests/pages $(ARGS)

build/pages/.installed: tests/pages/requirements.txt $(READY)
	@rm -rf $(@D)
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --target $(@D) -r $<
	@touch $@

build/pages-api/.installed: tests/pages/api-requirements.txt $(READY)
	@python=$$(bash .ci/python) && "$$python" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.PHONY: pictures
pictures: build/pages/.installed ## The pictures of the pages in docs/pictures anew (needs chromium)
	PYTHONPATH=build/pages:. $(PY) -m tests.pages.pictures docs/pictures

.PHONY: test-proxy
test-proxy: $(READY) build/pages/.installed build/proxy/.ready ## The pages behind a real OIDC proxy, in a real browser (needs chromium)
	PYTHONPATH=build/pages $(PY) -m pytest tests/proxy $(ARGS)

build/proxy/.ready: tests/proxy/provider.txt $(wildcard tests/proxy/tools/*) tests/go_tools.sh $(READY)
	@bash tests/go_tools.sh tests/proxy/tools $(@D)/bin
	@python=$$(bash .ci/python) && "$$python" -m venv --clear $(@D)/provider
	@$(@D)/provider/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/proxy/provider.txt
	@touch $@

.PHONY: rollouts
rollouts: $(ARTIFACTS) | java ## Play COUNT (100) random rollouts from SEED (0) on against the whole line
	@PYTHONPATH=. $(PY) -m tests.e2e.runner --random $(or $(COUNT),100) --seed $(or $(SEED),0) $(ARGS)

.PHONY: fuzz-ddl
fuzz-ddl: $(ARTIFACTS) | java ## N random statements (SEED, SERVER=mysql80|mysql97|mariadb1011|mariadb118|mysql57): tracker = server
	@PYTHONPATH=. $(PY) -m tests.integration.mysql.fuzz --statements $(or $(N),1000) --seed $(or $(SEED),1) \
		--server $(or $(SERVER),mysql80) $(ARGS)

.PHONY: bench
bench: $(ARTIFACTS) | java ## Rows per second Kafka to target, beside LOAD DATA and the JDBC sink; latency; a whole backlog; DDL per second
	PYTHONPATH=. $(PY) -m benchmarks.sink_throughput
	PYTHONPATH=. $(PY) -m benchmarks.sink_throughput --server mariadb1011
	PYTHONPATH=. $(PY) -m benchmarks.jdbc_sink
	PYTHONPATH=. $(PY) -m benchmarks.latency
	PYTHONPATH=. $(PY) -m benchmarks.backlog --sources 1
	PYTHONPATH=. $(PY) -m benchmarks.backlog --sources 1 --apart
	PYTHONPATH=. $(PY) -m benchmarks.ddl_speed

.PHONY: bench-failover
bench-failover: $(ARTIFACTS) | java ## Seconds until rows flow again when parts are killed, lost and doubled rows (ARGS="--parts sink --rounds 5")
	PYTHONPATH=. $(PY) -m benchmarks.failover $(ARGS)

.PHONY: bench-upgrade
bench-upgrade: $(ARTIFACTS) | java ## Longest gap of rows while each part is replaced: OLD=revision by this tree; lost and doubled rows
	@PYTHONPATH=. $(PY) -m benchmarks.rolling_upgrade --old $(or $(OLD),HEAD~1) $(ARGS)

.PHONY: bench-load
bench-load: $(ARTIFACTS) | java ## Seconds of a first load: Debezium's snapshot, the sink's own, SELECT into LOAD DATA by hand; clients that read (ARGS="--rounds 3")
	PYTHONPATH=. $(PY) -m benchmarks.first_load $(ARGS)
	PYTHONPATH=. $(PY) -m benchmarks.load_reader

.PHONY: bench-tidb
bench-tidb: $(ARTIFACTS) | java ## Rows per second into TIDB=USER:PASSWORD@HOST:PORT: each way of writing, Kafka to it, MySQL to it
	@PYTHONPATH=. $(PY) -m benchmarks.tidb_load --tidb '$(TIDB)' $(ARGS)
	@PYTHONPATH=. $(PY) -m benchmarks.sink_throughput --tidb '$(TIDB)' --events 200000 --rows 1000 --shards 1 --partitions 4 --mix 100/0/0 --small 0 --no-stages
	@PYTHONPATH=. $(PY) -m benchmarks.backlog --tidb '$(TIDB)' --events 200000 --sources 1 --mix 100/0/0

.PHONY: bench-validation
bench-validation: $(ARTIFACTS) | java ## Rows per second that validate compares; then an hour beside random writes and DDL: it must find no difference (ARGS="--seconds 600")
	PYTHONPATH=. $(PY) -m benchmarks.validation_speed
	PYTHONPATH=. $(PY) -m benchmarks.validation_soak $(ARGS)

.PHONY: bench-parsers
bench-parsers: $(ARTIFACTS) | java ## What Debezium's DDL parsers refuse or misread of what servers take (ARGS="--versions 3.6.1.Final")
	PYTHONPATH=. $(PY) -m benchmarks.debezium_parsers $(ARGS)

.PHONY: bench-agents chaos-agents
bench-agents: $(ARTIFACTS) | java ## Decisions per second, latency, recovery and memory of the agents (ARGS="--wide 1000")
	PYTHONPATH=. $(PY) -m benchmarks.agents_speed $(ARGS)

.PHONY: bench-plan
bench-plan: $(READY) ## How long `shardmerge plan` takes (ARGS="--shards 1000 --steps 20")
	PYTHONPATH=. $(PY) -m benchmarks.plan_speed $(ARGS)

.PHONY: bench-pages
bench-pages: $(READY) ## Processor milliseconds and kilobytes of a target's page (ARGS="--shards 10000 --columns 50 --odd 1 --changes 20")
	PYTHONPATH=. $(PY) -m benchmarks.pages_speed $(ARGS)

.PHONY: bench-shards
bench-shards: $(ARTIFACTS) | java ## What shards cost: start, memory, the idle line, ADD COLUMN, a rollout (ARGS="--shards 100,1000 --topics shared")
	PYTHONPATH=. $(PY) -m benchmarks.many_shards $(ARGS)

.PHONY: bench-shards-added
bench-shards-added: $(READY) ## The work of the sink's driver while shards are added, without servers (ARGS="--shards 1000,3000 --topics shared --profile idle")
	PYTHONPATH=. $(PY) -m benchmarks.shards_added $(ARGS)

.PHONY: test-spark
test-spark: $(ARTIFACTS) | java ## The sink's tests that start Spark, under an older one (SPARK=4.0.4; by default every one)
	@PYTHONPATH=. $(PY) -m tests.levels $(if $(SPARK),spark-$(SPARK),$(SPARKS))

build/spark-%/.installed: tests/sparks/%.txt $(READY)
	@rm -rf $(@D)
	@echo "Spark $*: $<"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --target $(@D) -r $<
	@touch $@

.PHONY: chaos-sink chaos-connect
chaos-sink: $(ARTIFACTS) | java ## Kill the sink at every failpoint, its workers, Kafka and the target; print the counts
	PYTHONPATH=. $(PY) -m tests.integration.spark.chaos $(ARGS)

chaos-agents: $(ARTIFACTS) | java ## Kill the agents at every failpoint, the broker, and one of two workers; print the counts
	PYTHONPATH=. $(PY) -m tests.integration.agents.chaos $(ARGS)

chaos-connect: $(ARTIFACTS) | java ## Everything that stops Debezium for good, and restarts; print seconds, lost, doubled, wrong
	PYTHONPATH=. $(PY) -m tests.integration.connect.chaos $(ARGS)

# --- documents -----------------------------------------------------------------------------------

DOCS := build/docs-venv

.PHONY: docs reference
# No file of the site is loaded from elsewhere. The theme's notice of its own end is no warning about a page.
docs: $(DOCS)/.ready ## The documents as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict
	@! grep -rhoE '<(script|link|img)[^>]+(src|href)="?https?://[^ >"]+' build/site --include='*.html'
	@echo "build/site/index.html"

reference: $(READY) ## The reference pages anew, from the code
	@PYTHONPATH=. $(PY) -m docs.generate

$(DOCS)/.ready: docs/requirements.txt
	@python=$$(bash .ci/python) && "$$python" -m venv --clear $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r docs/requirements.txt
	@touch $@

# --- packages -------------------------------------------------------------------------------------

RELEASE := build/release-tools

.PHONY: release-check
release-check: $(READY) $(RELEASE)/.ready ## sdist and wheel, installed with each extra; version, changelog and tag (TAG=v1.2.3)
	@PYTHONPATH=. $(PY) -m tests.release $(CURDIR)/$(RELEASE)/bin/python $(TAG)

$(RELEASE)/.ready: tests/release/requirements.txt
	@python=$$(bash .ci/python) && "$$python" -m venv --clear $(RELEASE)
	@$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.PHONY: lock clean
lock: $(READY) ## requirements.lock anew from pyproject.toml, and what builds the documents
	@$(PY) -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--all-extras --group dev pyproject.toml -o requirements.lock
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		docs/requirements.in -o docs/requirements.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		tests/pages/requirements.in -o tests/pages/requirements.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		tests/release/requirements.in -o tests/release/requirements.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		tests/pages/api-requirements.in -o tests/pages/api-requirements.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		tests/proxy/provider.in -o tests/proxy/provider.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		tests/chart/models.in -o tests/chart/models.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-deps tests/chart/kubernetes.in -o tests/chart/kubernetes.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-deps tests/chart/java.in -o tests/chart/java.txt
	@$(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		tests/go/go.in -o tests/go/go.txt

clean: ## Everything built; keeps .venv and what was fetched
	@rm -rf build/reports build/wheel build/site build/docs-venv dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
