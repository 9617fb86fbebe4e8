# Every target sets up what it needs: a virtual environment in .venv and the packages it uses.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: grafana demo test together timed quick brief lint docs bench bench-trainers faults fuzz sanitize soak clean

DEPENDS := pyproject.toml constraints.txt $(wildcard sdk/*/*.[ch])

$(STAMP): $(DEPENDS)
	@$(PYTHON) .ci/install.py $(VENV) -c constraints.txt -e '.[trainers,grafana,dev]'
	@touch $(STAMP) $(VENV)/.demo

# The demo needs only the trainers: a fraction of what the tests need. Where all is installed, nothing is.
$(VENV)/.demo: $(DEPENDS)
	@$(PYTHON) .ci/install.py $(VENV) -c constraints.txt -e '.[trainers]'
	@touch $@

demo: $(VENV)/.demo
	@$(BIN)/gpumon demo

# The documentation as a site in out/site; a broken link or a page in no menu is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m docs.tools.site

$(VENV)/.docs: $(DEPENDS)
	@$(PYTHON) .ci/install.py $(VENV) -c constraints.txt -e '.[docs]'
	@touch $@

# Most of a test's time is spent waiting for processes: three files at a time, each in one process, the longest first
# (docs/testing.md). Tests that compare the times of real trainings come after the others, with only each other beside.
PYTEST := $(BIN)/python -m pytest
FILES  := $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -o junit_family=xunit1

# Every child process would compile all it imports anew.
unexport PYTHONDONTWRITEBYTECODE

# Failures (status 1) are run once more with nothing beside them: a crowded machine is no reason to fail. Anything else
# that went wrong stays wrong.
AGAIN  := { test $$? = 1 && echo 'make: once more, alone:' && \
            $(PYTEST) --last-failed --last-failed-no-failures none -v; }

# Types are checked by one process, beside the tests.
test: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint together
	@$(MAKE) --no-print-directory timed

quick: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint brief

together: $(STAMP)
	$(FILES) -m 'not timed' --junitxml=out/tests/together.xml || $(AGAIN)

timed: $(STAMP)
	$(FILES) -m timed --junitxml=out/tests/timed.xml || $(AGAIN)

brief: $(STAMP)
	$(FILES) -m 'not slow' tests/unit tests/tui

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# How many processes `make faults` kills; `make test` kills 20. From 200 on the figures are recorded.
N ?= 200

faults: $(STAMP)
	$(BIN)/python -m tests.faults --kills $(N)

fuzz: $(STAMP)
	$(BIN)/python -m tests.faults.fuzz --rings 100000 --record
	$(BIN)/python -m tests.faults.fuzz_daemon --rings 2000 --record
	$(BIN)/python -m tests.faults.fuzz_api --examples 1000 --record
	$(BIN)/python -m tests.faults.fuzz_files --examples 5000 --record
	$(BIN)/python -m pytest --hypothesis-profile=explore tests/unit
	$(MAKE) sanitize

# The C core under the address and undefined-behaviour sanitizers, called as nobody would call it.
sanitize: $(STAMP)
	$(BIN)/python -m tests.faults.fuzz_core --calls 200000 --record

# How long `make soak` measures, after 11 minutes of warm-up; its figures are recorded from 10 minutes on.
MINUTES ?= 10

soak: $(STAMP)
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

bench: $(STAMP)
	$(BIN)/python -m tests.benchmarks

bench-trainers: $(STAMP)
	$(BIN)/python -m tests.benchmarks.trainers; status=$$?; \
	$(BIN)/python -m tests.benchmarks.trainers.learning && exit $$status

# Prometheus and Grafana in Docker, beside a running `gpumon daemon`; needs Docker with its compose plugin.
grafana:
	docker compose -f grafana/compose.yaml up

clean:
	rm -rf $(VENV) out
