# Two commands matter on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests start hundreds of Python processes: compiling Butler for each of them costs as much as they do.
export PYTHONDONTWRITEBYTECODE :=
# Tests wait more than they compute, for watches, leases and servers: five at a time keep two cores busy.
WORKERS ?= 5
SIDE_BY_SIDE := -q -p no:cacheprovider --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder --again-alone

.DEFAULT_GOAL := help
.PHONY: help run console test test-butler test-kubeserver test-console test-crash test-faults test-chaos test-tenants test-model test-conformance test-metallb test-elastic test-server test-tenants-scale test-alerts fuzz kubernetes bench-apiserver bench-hostile bench-ipam bench-tenants bench-elastic bench-cli bench-server bench-console setup setup-test coverage lint types format generate lock clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: setup ## Build and serve the console on this machine, with a demo in it (DEMO=no: with nothing; Ctrl-C stops it)
	@$(BIN)/python tools/build_console.py --or-without
	@$(BIN)/butleradm local up $(if $(filter no,$(DEMO)),,--demo)

console: setup ## Build the console's pages into console/dist, if anything has changed
	@$(BIN)/python tools/build_console.py

test: setup-test ## Install what is needed, then lint, type-check and run all tests
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target lint types test-console
	$(BIN)/python tools/build_test_programs.py
	@$(MAKE) --no-print-directory --keep-going test-kubeserver test-butler

test-butler: setup-test ## Run the everyday tests of Butler (WORKERS=5 at a time)
	$(BIN)/pytest $(SIDE_BY_SIDE)

test-kubeserver: setup-test ## Run the everyday tests of the embedded API server
	cd kubeserver && ../$(BIN)/pytest $(SIDE_BY_SIDE)

test-console: setup ## Check the format, lint, type-check, test and build the console
	@$(BIN)/python tools/build_console.py --check

test-crash: setup-test ## Kill the embedded API server 50 times under load and check that nothing is lost
	$(BIN)/pytest -q -s -m slow kubeserver/tests/process/test_crash.py

test-alerts: ## Check the shipped alert rules, and that each fires when it should, with Prometheus' own promtool
	bin=$$(nice -n 10 $(PYTHON) tools/build_kubernetes.py prometheus) && \
	$$bin/promtool check rules --lint=all --lint-fatal charts/butler/alerts/*.rules.yaml && \
	$$bin/promtool test rules tests/alerts/*.test.yaml

test-faults: setup-test ## Play every fault of address management at length on both control planes (BUTLER_SEED=7 replays one)
	$(BIN)/pytest -q -m slow --timeout 1800 tests/ipam

test-chaos: setup-test ## An hour of seeded chaos on a real Kubernetes: kills, restores of etcd, edits by hand (CHAOS_MINUTES=20 a seed; BUTLER_SEED=7 plays one)
	$(BIN)/pytest -q -s -m slow tests/chaos

test-tenants: setup-test ## Bring whole tenant clusters up, change them and take them down, on both control planes
	$(BIN)/pytest -q -m 'slow or not slow' --timeout 600 tests/tenants/flows tests/tenants/test_requests.py tests/tenants/test_without_cluster_api.py tests/local/world

test-conformance: setup-test ## Check every fact about the Kubernetes API on the embedded server and on a real Kubernetes
	$(BIN)/pytest -q -m 'slow or not slow' kubeserver/tests/conformance
	$(BIN)/pytest -q -m 'slow or not slow' tests/local/test_kubectl.py tests/local/test_kubectl_reading.py tests/local/test_kubectl_refusals.py tests/local/test_helm.py

test-model: setup-test ## Search larger worlds of the address protocol for an order of events that breaks it
	$(BIN)/pytest -q -s --timeout 3600 -m slow tests/model

test-metallb: setup-test ## Play many histories of Services and pools on MetalLB and on its stand-in, on both control planes
	$(BIN)/pytest -q -m slow --timeout 1800 tests/local/world_metallb

test-elastic: setup-test ## Break elastic tenants at length, and churn Services on the real MetalLB (BUTLER_SEED=7 replays one)
	$(BIN)/pytest -q -s -m slow --timeout 3600 tests/elastic

test-server: setup-test ## Ask every route of the console's server for everything, and cut its stream with many seeds
	$(BIN)/pytest -q -m slow --timeout 3600 tests/server tests/cli

test-tenants-scale: setup-test ## Create 200 tenant clusters at once, delete and create 100 more, with kills in between; 50 rounds of too many
	$(BIN)/pytest -q -s -m slow --timeout 3600 tests/tenants/test_kills.py tests/tenants/test_all_or_nothing.py

fuzz: setup-test ## Send thousands of spoiled requests to the embedded API server (FUZZ_EXAMPLES=20000)
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-20000} $(BIN)/pytest -q --timeout 3600 kubeserver/tests/process/test_fuzz.py

kubernetes: ## Build the real Kubernetes that tests run on (once; `make test` does it too)
	$(PYTHON) tools/build_kubernetes.py

setup: $(VENV)/.installed ## Install Butler into .venv/

setup-test: $(VENV)/.installed-test

$(VENV)/.installed: requirements.lock pyproject.toml src/butler/__init__.py kubeserver/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Butler needs Python 3.11 or newer. Name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable ./kubeserver --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed requirements-test.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.lock
	@touch $@

lint: setup-test ## Check style and the layers between packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config kubeserver/pyproject.toml

coverage: setup-test ## Measure which lines of Butler unit tests and models run, and which test runs each (build/coverage/index.html); fails below a floor
	mkdir -p build/coverage
	$(BIN)/pytest $(SIDE_BY_SIDE) -m 'not slow and not kubernetes' tests/unit tests/model --cov --cov-context=test --cov-report=term --cov-report=html

types: setup-test ## Check types (mypy, strict; of tests, benchmarks and tools a little less)
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	cd kubeserver && ../$(BIN)/mypy --config-file tests/mypy.ini

format: setup-test ## Rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@$(BIN)/python tools/build_console.py --format

bench-apiserver: setup-test ## Measure the embedded API server beside a real one, in one run
	$(BIN)/python bench/bench_apiserver.py

bench-hostile: setup-test ## Measure a well-behaved client beside hostile ones, on both API servers (ONLY=watches; WATCHES=10000; SECONDS_EACH=8)
	$(BIN)/python bench/bench_hostile.py $(if $(ONLY),--only $(ONLY)) $(if $(WATCHES),--watches $(WATCHES)) $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH))

bench-ipam: setup-test ## Measure address management beside others (PART=decisions, packing, end-to-end or growth; REST_SECONDS=600; ON=embedded; CURVES="pools events pins tenants"; LARGEST=1000)
	$(BIN)/python bench/bench_ipam.py $(if $(PART),--part $(PART)) $(if $(REST_SECONDS),--rest $(REST_SECONDS)) $(if $(ON),--on $(ON)) $(if $(CURVES),--curves $(CURVES)) $(if $(LARGEST),--largest $(LARGEST))

bench-tenants: setup-test ## Measure 200 tenant clusters at once, from created to gone (ONLY=embedded, apart or kubernetes)
	$(BIN)/python bench/bench_tenants.py $(if $(ONLY),--only $(ONLY)) $(if $(CLUSTERS),--clusters $(CLUSTERS))

bench-elastic: setup-test ## Measure load-balancer addresses on demand, and 1,000 tenants at rest (ONLY=latency, rest or feeds; TENANTS=200)
	$(BIN)/python bench/bench_elastic.py $(if $(ONLY),--only $(ONLY)) $(if $(TENANTS),--tenants $(TENANTS)) $(if $(REST_SECONDS),--rest $(REST_SECONDS))

bench-cli: setup-test ## Measure how long commands take from Enter to prompt, beside kubectl
	$(BIN)/python bench/bench_cli.py

bench-server: setup-test ## Measure the console's API: reads, live changes, many people
	$(BIN)/python bench/bench_server.py

bench-console: setup-test ## Measure the console in a browser, from opened to shown, on large estates
	$(BIN)/python bench/bench_console.py

generate: setup ## Write the CRDs, the chart's version, the reference pages and the console's types anew
	$(BIN)/python tools/write_version.py
	$(BIN)/python -m butler.api.crd charts/butler/crds
	$(BIN)/python -m butler.api.reference docs/reference
	$(BIN)/python -m butler.cli.reference docs/commands
	$(BIN)/python -m butler.server.openapi > console/openapi.json.new
	mv console/openapi.json.new console/openapi.json
	@$(BIN)/python tools/build_console.py --generate

lock: setup-test ## Resolve the dependencies anew into the lock files
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-emit-package kubeserver pyproject.toml --group build -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-emit-package kubeserver pyproject.toml --group test -o requirements-test.lock

clean: ## Remove everything that was installed or built here
	rm -rf $(VENV) build dist console/dist console/node_modules
