# All set-up lives here: `make demo` and `make test` need Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB := $(VENV)/.lab
READY := $(VENV)/.ready
BROWSER := $(VENV)/.browser
PEERS := .venv-peers/.ready
EXAMPLES := .venv-examples/.ready
# Modules are compiled when they are first imported: most of what is installed never is.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# One BLAS thread per process: runs are parallel over trials and test workers, and results
# do not depend on how many cores a machine has.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.PHONY: demo docs trust federated router test test-all test-pythons coverage ci nightly bench bench-fleet soak lint \
	types format clean

demo: $(LAB)
	$(BIN)/coop demo

trust: $(LAB)
	$(BIN)/python examples/whom_to_trust.py

# The example's own needs, scikit-learn and Optuna, live in an environment of their own.
federated: $(EXAMPLES)
	.venv-examples/bin/python examples/federated_tuning.py

# Needs scikit-learn, the extra `datasets`, and data that are downloaded apart: DATA=folder.
router: $(READY)
	$(BIN)/python examples/llm_router.py $(DATA)

# The documentation site: out/site/index.html. The first time it plays the demo, whose page it shows.
docs: $(READY) out/demo/report.html
	$(BIN)/python docs/site/build_site.py

out/demo/report.html: | $(LAB)
	$(BIN)/coop demo

test: lint types $(BROWSER)
	$(PYTEST)

test-all: lint types $(BROWSER)
	$(PYTEST) -m "slow or not slow" --hypothesis-profile=thorough

# The fast tests on every Python that may be installed, each in an environment of its own
# (.venv-3.12); one that is not here is skipped, and said so. TESTS=tests/test_kernels.py for a part.
PYTHONS ?= 3.11 3.12 3.13
test-pythons:
	@failed=; for version in $(PYTHONS); do \
		python=; for each in "$$(command -v python$$version)" "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
			test -x "$$each" && "$$each" -c 'import venv' 2>/dev/null && { python=$$each; break; }; done; \
		test -n "$$python" || { echo "Python $$version is not here: skipped"; continue; }; \
		echo "Python $$version: $$("$$python" --version)"; \
		{ test -x .venv-$$version/bin/python || "$$python" -m venv .venv-$$version; } && \
		.venv-$$version/bin/python $(INSTALL) -c constraints.txt -e '.[dev]' && \
		.venv-$$version/bin/python -m pytest -n 2 --dist worksteal $(TESTS) || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "failed on Python$$failed"; exit 1; }

# How much of the package the tests run; processes that they start are measured too.
# TESTS=tests/agent for a part; out/coverage has the pages, out/coverage.txt the summary.
coverage: $(READY)
	@mkdir -p out
	$(PYTEST) --cov --cov-report= $(TESTS)
	$(BIN)/coverage report > out/coverage.txt
	$(BIN)/coverage html --quiet --directory out/coverage
	@tail -n 3 out/coverage.txt

# What .ci/run calls: the tests as above, then the slow ones, the wheel's among them.
ci: test
	$(PYTEST) -m slow

# Ten thousand simulated fleets, and the search for planted mutants; a failure says how to replay it.
nightly: $(READY)
	PYTHONPATH=tests $(BIN)/python -m fleet.simulation --seeds 10000 --processes 2 --search \
		--report out/nightly

# Peers live in an environment of their own: torch alone is larger than all the rest.
bench: $(READY) $(PEERS)
	$(BIN)/python benchmarks/speed.py run $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/speed.py table

# Rows that are measured already are not measured again: see benchmarks/fleet/__main__.py.
bench-fleet: $(READY) $(PEERS)
	$(BIN)/python -m benchmarks.fleet run
	$(BIN)/python -m benchmarks.fleet table

# An hour; MINUTES=10 for less.
soak: $(READY)
	$(BIN)/python -m benchmarks.soak $(if $(MINUTES),--minutes $(MINUTES))

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What `coop` needs; the tests' needs are added to it.
$(LAB): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "coopbandits needs Python 3.11 or newer, but $(PYTHON) is %d.%d; try: make PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) -c constraints.txt -e '.[lab]'
	@touch $(LAB)

$(READY): $(LAB)
	$(BIN)/python $(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $(READY)

# Report pages are tested in a real browser. Where there is none and none can be installed, those
# tests are skipped and say so.
$(BROWSER): $(READY)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	command -v google-chrome >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || \
	echo "no Chromium here: tests of report pages will be skipped"
	@touch $(BROWSER)

# Of them, FastAPI is measured around the project's own node.
$(PEERS): pyproject.toml benchmarks/constraints.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(INSTALL) -c benchmarks/constraints.txt -e '.[fleet]' mabwiser river scikit-learn botorch obp fastapi
	@touch $(PEERS)

$(EXAMPLES): pyproject.toml constraints.txt examples/constraints.txt
	$(PYTHON) -m venv .venv-examples
	.venv-examples/bin/python $(INSTALL) -c constraints.txt -c examples/constraints.txt -e '.[lab]' scikit-learn optuna
	@touch $(EXAMPLES)

clean:
	rm -rf $(VENV) .venv-[0-9]* .venv-peers .venv-examples build dist out .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
