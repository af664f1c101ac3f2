# Every target sets up what it needs: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test slow lint format check-all bench docs reproduce docs-reproduction clean

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
	rm -rf .venv demo build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
