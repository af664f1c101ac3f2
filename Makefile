# Every target sets up what it needs: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test slow oldest lint format check-all bench docs reproduce docs-reproduction dist clean

# Where each package that butfor needs is at work.
OLDEST_TESTS := tests/test_api.py tests/test_spread.py tests/boundary tests/cli/test_app.py tests/cli/test_explain.py \
	tests/cli/test_hyperparameters.py tests/datasets/test_tables.py tests/evaluation/test_figures.py \
	tests/evaluation/test_significance.py tests/executors/test_run.py tests/methods/test_attack.py \
	tests/methods/test_exact.py tests/methods/test_random.py tests/methods/test_subgraph.py tests/models/test_weights.py \
	tests/pages/test_widget.py tests/paper/test_page.py tests/paper/parts/test_hyperparameter_search.py \
	tests/plotting/test_picture.py tests/plotting/molecules/test_coordinates.py tests/result/test_networkx_graph.py \
	tests/runs/test_folder.py

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m butfor.warm_up
	touch $@

demo: $(STAMP)
	$(BIN)/butfor demo --out demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not slow'

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Everything that is too long for `make test`; the tests that are, CI runs too.
check-all: lint test slow bench

slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

# The oldest packages that are allowed, in an environment of their own. They deprecate parts of each other.
oldest:
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt '.[test]'
	.venv-oldest/bin/python -m pytest -m 'not slow' -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning $(OLDEST_TESTS)

# The sdist, and the wheel that is built from it.
dist: $(STAMP)
	$(BIN)/python -m build

bench: $(STAMP)
	$(BIN)/python -m benchmarks.neighbourhood
	$(BIN)/python -m benchmarks.cf_gnn
	$(BIN)/python -m benchmarks.exact

# The site, in site/index.html: tutorials are run, examples of the reference shown; a broken link is an error.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

.venv/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

# The paper's whole evaluation beside its numbers; `make reproduce QUICK=--quick` for a tenth of it.
reproduce: $(STAMP)
	$(BIN)/butfor reproduce $(QUICK) --out reproduction

# What the documents show of it.
docs-reproduction: reproduce
	rm -rf docs/results/reproduction && mkdir docs/results/reproduction
	cd reproduction && cp -r report.md settings.json tables figures ../docs/results/reproduction
	rm docs/results/reproduction/figures/*.svg

clean:
	rm -rf .venv .venv-oldest demo build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
