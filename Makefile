# Every target sets up what it needs. `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MUTANTS := .venv-mutants
EXAMPLE := examples/getting-started
FIRST_STEPS := examples/first-steps/first.yaml
# Tests that need a real API server or a real kubectl.
CLUSTERED := tests/testenv tests/conformance tests/up tests/real tests/chaos
# Tests that need a browser.
BROWSED := tests/page
# Tests on an API server mostly wait, so there are more workers than cores.
WORKERS ?= 4
# A fresh clone has no bytecode; without it, each Python process that the tests start compiles the program again.
unexport PYTHONDONTWRITEBYTECODE
# A worker that crashes ends the run: xdist would run its tests again.
PYTEST := $(BIN)/python -m pytest -p tests.plugins.file_progress -o console_output_style=classic --max-worker-restart=0
# What `make test-long` runs.
LONG ?= unit-long migration compare chaos soak mutants
# How long each part of `make test` took.
TIMES := build/test-times.txt
# What `make quick` tests: the packages with changes since BASE, committed or not, in src/ and tests/.
BASE ?= $(shell git rev-parse -q --verify '@{upstream}' 2>/dev/null || echo HEAD)
CHANGED = $(wildcard $(foreach package,$(CHANGED_PACKAGES),src/cidrella/$(package) tests/$(package)))
CHANGED_PACKAGES = $(filter-out $(notdir $(CLUSTERED) $(BROWSED)),$(sort $(shell \
	{ git diff --no-renames --name-only --merge-base $(BASE) 2>/dev/null; git ls-files --others --exclude-standard; } \
	| sed -nE 's,^(src/cidrella|tests)/([a-z]+)/.*,\2,p')))

.DEFAULT_GOAL := help
.PHONY: help run test quick test-long unit-long lint types layers unit unit-changed real page chromium page-pictures chaos chaos-replay compare migration kubectl testenv peers bench-core bench-cluster bench-failing-nodes bench-services bench-up bench-page soak mutants crds pictures package lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-19s %s\n", $$1, $$2}'

run: $(VENV)/.up ## Set up, then run everything on this machine until Ctrl-C: an API, the controller, a pool to play with
	@$(BIN)/cidrella up -f $(FIRST_STEPS)

# First the parts that need no cluster, while the test environment is built; then the others. If a part fails, the second stage does not start.
test: $(VENV)/.dev ## Run every check that must pass: lint, types, layers, unit tests, tests on a real API server and in a browser
	@mkdir -p build && rm -rf $(TIMES) build/testenv-logs
	@$(MAKE) --no-print-directory -j lint types layers unit testenv chromium \
		&& $(MAKE) --no-print-directory -j page real; \
		status=$$?; echo "--- seconds by part"; cat $(TIMES); exit $$status

quick: $(VENV)/.dev ## Run lint, types, layers, and the unit tests of the packages in src/ and tests/ changed since BASE (the upstream branch, else HEAD)
	@$(MAKE) --no-print-directory -j lint types layers unit-changed

# Every part runs, even if another one fails. The last lines say which failed.
test-long: $(VENV)/.dev ## Run the exhaustive tests, in hours: LONG names its parts; before a release, and before work on the write path is done
	@mkdir -p build && rm -f build/test-long.txt.new
	@for part in $(LONG); do \
			echo "--- $$part"; began=$$(date +%s); word=passed; $(MAKE) --no-print-directory $$part || word=FAILED; \
			echo "$$part: $$word, $$(( $$(date +%s) - began )) s" >> build/test-long.txt.new; \
		done
	@mv build/test-long.txt.new build/test-long.txt; echo "--- results"; cat build/test-long.txt; ! grep -q FAILED build/test-long.txt

unit-long: $(VENV)/.dev ## Run the unit tests with five times as many examples, new ones each time
	@HYPOTHESIS_PROFILE=long $(MAKE) --no-print-directory unit

lint: $(VENV)/.dev ## Check style and formatting
	$(call timed,lint,$(BIN)/ruff check && $(BIN)/ruff format --check)

types: $(VENV)/.dev ## Check types
	$(call timed,types,$(BIN)/mypy)

layers: $(VENV)/.dev ## Check that no package imports from a layer above it
	$(call timed,layers,$(BIN)/lint-imports --no-cache)

unit: $(VENV)/.dev ## Run the tests that need no cluster; every branch of the core must be covered
	$(call timed,unit,$(PYTEST) -n 2 --cov --cov-report= --doctest-modules src tests $(addprefix --ignore=,$(CLUSTERED) $(BROWSED)) \
		&& $(BIN)/coverage report --include='src/cidrella/core/*' --fail-under=100 \
		&& $(BIN)/coverage report --omit='src/cidrella/core/*')

unit-changed: $(VENV)/.dev
	@git rev-parse -q --verify '$(BASE)^{commit}' > /dev/null || { echo 'make quick: BASE is no commit of a git checkout: $(BASE)'; exit 2; }
	$(call timed,unit tests of changed packages: $(or $(CHANGED),none),$(if $(CHANGED),$(PYTEST) -n auto --doctest-modules $(CHANGED)))

real: $(VENV)/.dev testenv ## Run the tests on a real API server and on the embedded one, and those of the test environment
	$(call timed,real,$(PYTEST) -n $(WORKERS) $(CLUSTERED))

page: $(VENV)/.dev testenv chromium ## Run the tests of the page in a real Chromium
	$(call timed,page,$(PYTEST) -n 2 $(BROWSED))

chaos: $(VENV)/.dev testenv ## Break a real cluster in every way and check all that happened: SEEDS runs (10), from SEED (1) on, of SECONDS (240)
	@$(BIN)/python -m tests.chaos run --seeds $(or $(SEEDS),10) --seed $(or $(SEED),1) --seconds $(or $(SECONDS),240)

chaos-replay: $(VENV)/.dev ## Check again what a run of chaos left in DIR (build/chaos/seed-N)
	@$(BIN)/python -m tests.chaos replay $(or $(DIR),$(error say which one: make chaos-replay DIR=build/chaos/seed-1))

compare: $(VENV)/.dev testenv ## Send random requests to the real API server and the embedded one: SEEDS sequences (100), from SEED (1) on
	$(call timed,compare,SEEDS=$(or $(SEEDS),100) SEED=$(or $(SEED),1) $(BIN)/python -m pytest -q tests/conformance/test_random.py)

migration: $(VENV)/.dev testenv ## Migrate from kube-controller-manager's allocator and back (builds it first: minutes, once)
	@$(BIN)/python -m tests.testenv.binaries kube-controller-manager
	$(call timed,migration,$(BIN)/python -m pytest tests/real/migration.py)

# Print the name of a part, run it, and print and record how long it took.
define timed
	@mkdir -p build; echo "--- $(1)"; began=$$(date +%s); { $(or $(2),true); }; status=$$?; \
		line="$(1): $$(( $$(date +%s) - began )) s$$([ $$status = 0 ] || echo ', failed')"; echo "--- $$line"; echo "$$line" >> $(TIMES); exit $$status
endef

kubectl: $(VENV)/bin/python ## Find or build kubectl, and link it to .venv/bin/kubectl
	@path=$$($(BIN)/python -m tests.testenv.binaries kubectl) && ln -sf "$$path" $(BIN)/kubectl && echo $(BIN)/kubectl

chromium: $(VENV)/.dev ## Find Chromium, or install it
	@$(BIN)/python -m tests.page.chromium

testenv: $(VENV)/bin/python ## Find or build what the tests run on: kube-apiserver, etcd, kubectl (minutes, once)
	@$(BIN)/python -m tests.testenv.binaries

peers: $(VENV)/bin/python ## Find or build what we are measured beside (minutes, once)
	@$(BIN)/python -m tests.testenv.binaries kube-controller-manager cidrset multicidrset bitmap

# Nice, all of it: ours and what it is measured beside have to wait alike for whatever else runs.
bench-core: $(VENV)/.dev ## Measure the allocator, also beside Go's; writes build/bench-core.json
	@nice $(BIN)/python -m bench.core --json build/bench-core.json

bench-cluster: $(VENV)/.dev testenv ## Measure the controller on a real API server, beside its peers; writes build/bench-cluster.json; ONLY=intents for one part
	@$(BIN)/python -m bench.cluster --json build/bench-cluster.json $(if $(ONLY),--only $(ONLY))

bench-failing-nodes: $(VENV)/.dev testenv ## Measure how long nodes wait while the PATCHes of others fail; writes build/bench-failing-nodes.json; ONLY=hang-6 for one scenario, RATE (5) good nodes a second
	@$(BIN)/python -m bench.failing_nodes --json build/bench-failing-nodes.json $(if $(ONLY),--only $(ONLY)) $(if $(RATE),--rate $(RATE))

bench-services: $(VENV)/.dev testenv ## Measure how Service addresses are given, also beside Go's bitmap; writes build/bench-services.json
	@$(BIN)/python -m bench.services --json build/bench-services.json

bench-up: $(VENV)/.dev testenv ## Measure the embedded API beside kube-apiserver and etcd; writes build/bench-up.json
	@$(BIN)/python -m bench.up --json build/bench-up.json

bench-page: $(VENV)/.dev ## Measure the page with 5,000 nodes and 1,000 pools: 100 viewers for 10 minutes, then a browser for 5; writes build/bench-page*.json
	@$(BIN)/python -m bench.page --json build/bench-page.json
	@$(BIN)/python -m bench.page_browser --json build/bench-page-browser.json

soak: $(VENV)/.dev testenv ## Nodes come and go for MINUTES (20), RATE (10) a second: whether anything grows; writes build/soak.json
	@$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),20) --rate $(or $(RATE),10) --json build/soak.json

mutants: $(MUTANTS)/.ready ## Mutate the core and count what the tests notice; at least 90 % (takes a while)
	@HYPOTHESIS_PROFILE=mutants $(MUTANTS)/bin/mutmut run
	@$(MUTANTS)/bin/mutmut results --all true | $(MUTANTS)/bin/python tests/mutants_report.py

crds: $(VENV)/.run ## Write the committed copy of the CRDs anew
	@$(BIN)/cidrella crds clustercidrs.networking.x-k8s.io > deploy/crds/networking.x-k8s.io_clustercidrs.yaml
	@$(BIN)/cidrella crds clustercidrconfigs.networking.x-k8s.io > deploy/crds/networking.x-k8s.io_clustercidrconfigs.yaml
	@$(BIN)/cidrella crds rangeallocations.cidrella.dev > deploy/webhook/crds/cidrella.dev_rangeallocations.yaml

pictures: $(VENV)/.run ## Draw the pictures in docs/images anew
	@$(BIN)/cidrella map $(EXAMPLE) --svg docs/images/getting-started.svg

page-pictures: $(VENV)/.dev ## Draw the pictures of the page in docs/images anew
	@$(BIN)/python -m tests.page.pictures docs/images

# What the Containerfile does, without a container: a fresh environment, every dependency by its hash, the wheel on top.
package: $(VENV)/.run ## Build the wheel, and try it in a fresh environment (downloads what it needs)
	@rm -rf build/package && $(BIN)/python -m hatchling build -t wheel -d build/package/wheel
	@$(PYTHON) -m venv build/package/venv
	@build/package/venv/bin/pip install -q --disable-pip-version-check --only-binary :all: --require-hashes -r requirements/run.txt
	@build/package/venv/bin/pip install -q --disable-pip-version-check --no-deps --no-index build/package/wheel/*.whl
	@build/package/venv/bin/cidrella --version

lock: ## Pin the dependencies anew (needs uv)
	uv pip compile -q $(LOCK_FLAGS) pyproject.toml requirements/build.in -o requirements/run.txt
	uv pip compile -q $(LOCK_FLAGS) --extra up -c requirements/run.txt pyproject.toml requirements/build.in -o requirements/up.txt
	uv pip compile -q $(LOCK_FLAGS) --extra up -c requirements/up.txt pyproject.toml requirements/build.in requirements/dev.in -o requirements/dev.txt
	uv pip compile -q $(LOCK_FLAGS) -c requirements/dev.txt pyproject.toml requirements/build.in requirements/dev.in requirements/mutants.in -o requirements/mutants.txt
	uv pip compile -q $(LOCK_FLAGS) requirements/go.in -o requirements/go.txt
LOCK_FLAGS := --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links

clean: ## Remove what the targets made
	rm -rf $(VENV) $(MUTANTS) build mutants .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	@echo "--- making a virtual environment with $(PYTHON)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; say which with: make PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# The package itself is installed without its dependencies: the hashed files alone decide on those.
$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	@echo "--- installing what running needs"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.up: requirements/up.txt $(VENV)/.run
	@echo "--- installing what the embedded API needs"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/up.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.up
	@echo "--- installing what testing needs"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

$(MUTANTS)/.ready: requirements/mutants.txt pyproject.toml
	@$(PYTHON) -m venv $(MUTANTS)
	@$(MUTANTS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/mutants.txt
	@$(MUTANTS)/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
