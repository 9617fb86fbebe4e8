# Every target sets up what it needs: a virtual environment in .venv and the packages it uses.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: grafana demo test quick lint bench bench-trainers clean

$(STAMP): pyproject.toml constraints.txt $(wildcard sdk/core/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[trainers,grafana,dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/gpumon demo

test: lint
	$(BIN)/python -m pytest

quick: lint
	$(BIN)/python -m pytest -m 'not slow'

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m tests.benchmarks

bench-trainers: $(STAMP)
	$(BIN)/python -m tests.benchmarks.trainers

# Prometheus and Grafana in Docker, beside a running `gpumon daemon`; needs Docker with its compose plugin.
grafana:
	docker compose -f grafana/compose.yaml up

clean:
	rm -rf $(VENV) out
