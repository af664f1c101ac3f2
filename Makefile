# Every target sets up what it needs: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint format check-all bench reproduce clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m butfor.warm_up
	touch $@

demo: $(STAMP)
	$(BIN)/butfor demo --out demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Everything that is too long for `make test`.
check-all: lint test bench

bench: $(STAMP)
	$(BIN)/python -m benchmarks.neighbourhood
	$(BIN)/python -m benchmarks.cf_gnn
	$(BIN)/python -m benchmarks.exact

# The paper's whole evaluation beside its numbers; `make reproduce QUICK=--quick` for a tenth of it.
reproduce: $(STAMP)
	$(BIN)/butfor reproduce $(QUICK) --out reproduction

# What the documents show of it.
docs/reproduction: reproduction/report.md
	mkdir -p $@
	cp -r reproduction/report.md reproduction/settings.json reproduction/tables reproduction/figures $@

clean:
	rm -rf .venv demo reproduction build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
