# `make demo` and `make test` do all of their own set-up: a clone, Python 3.11 or newer and a package index are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The paper's raw data and trained models, for the tests that need them; without it those are skipped.
DATA := $(realpath ../shared/data)

.PHONY: demo test clean
.DEFAULT_GOAL := test

demo: $(VENV)/.installed-demo
	$(BIN)/globece demo --out demo-output

ifneq ($(DATA),)
test: export GLOBECE_DATA ?= $(DATA)
endif
test: $(VENV)/.installed-test browser page-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

clean:
	rm -rf $(VENV) demo-output

# A stamp for each set of extras, so that a second run is quick and a changed pyproject or constraint installs again.
$(VENV)/.installed-demo: EXTRAS := frames,plot,trees
$(VENV)/.installed-test: EXTRAS := all,dev
$(VENV)/.installed-docs: EXTRAS := all,dev,docs
$(VENV)/.installed-spark: EXTRAS := all,dev,spark
$(VENV)/.installed-%: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

.PHONY: bench
ifneq ($(DATA),)
bench bench-%: export GLOBECE_DATA ?= $(DATA)
endif
bench: $(VENV)/.installed-test
	$(BIN)/python -m bench $(ONLY)
bench-%: $(VENV)/.installed-test
	$(BIN)/python -m bench $*

# The page: `make page` builds it into the package, where it is committed, so that users need no Node. The test command
# builds it again where there is Node and fails if what is committed is stale; without Node, a fingerprint of the sources
# that lies beside the bundle tells.
.PHONY: page page-check browser fuzz
BUNDLE := src/globece/page/bundle
NODE := $(shell command -v node)
page: frontend/node_modules/.installed
	cd frontend && npm run --silent check && npm run --silent build -- --logLevel warn
	$(PYTHON) frontend/fingerprint.py > $(BUNDLE)/SOURCES
page-check: $(if $(NODE),frontend/node_modules/.installed)
	$(PYTHON) frontend/fingerprint.py | diff - $(BUNDLE)/SOURCES || (echo "The built page is stale: make page"; exit 1)
ifneq ($(NODE),)
	cd frontend && npm run --silent check && GLOBECE_BUNDLE=$(CURDIR)/build/page npm run --silent build -- --logLevel warn
	diff -r --exclude SOURCES build/page $(BUNDLE) || (echo "The built page is stale: make page"; exit 1)
endif
frontend/node_modules/.installed: frontend/package.json frontend/package-lock.json
	cd frontend && npm ci --silent
	touch $@

# The browser of the tests, where it is absent.
browser:
	command -v chromium >/dev/null || apt-get install --yes --quiet chromium

# The pictures of the page in docs/images.
.PHONY: pictures
pictures: $(VENV)/.installed-test browser
	$(BIN)/python -m tests.e2e.pictures

# Frame time while the budget is dragged in a page of 5,000 affected inputs and 5 directions.
.PHONY: frames
frames: $(VENV)/.installed-test browser
	$(BIN)/python -m tests.e2e.frames

# The widget in a real JupyterLab, which this installs.
.PHONY: notebook
notebook: $(VENV)/.installed-test browser
	$(BIN)/python -m pip install --quiet jupyterlab
	$(BIN)/python -m tests.e2e.notebook

# Random requests to the live page: `make fuzz REQUESTS=1000000 SEED=5`.
REQUESTS ?= 100000
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzzing $(REQUESTS) $(SEED)

# Spark, in a real local session. It needs a Java runtime, which this installs on Debian.
.PHONY: test-spark
test-spark: $(VENV)/.installed-spark
	command -v java >/dev/null || apt-get install --yes --quiet default-jre-headless
	PYSPARK_PYTHON=$(abspath $(BIN))/python $(BIN)/pytest tests/distributed/spark_session.py

# The wheel in clean environments: the core, each extra, oldest and newest dependencies, every Python at hand. Its quick
# part is tests/install. `make test-install CASES="oldest newest-3.13"`.
.PHONY: test-install
test-install: $(VENV)/.installed-test
	$(BIN)/python -m tests.install $(CASES)

# The documentation as a site, in build/docs: every code block and every example runs, and a warning is an error.
.PHONY: docs
docs: $(VENV)/.installed-docs
	rm -rf docs/generated docs/gallery
	$(BIN)/pytest -q tests/documents
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

# Damaged and hostile files: models, tables, results and configurations. `make fuzz-files FILES=1000 SEED=5 KIND=.onnx`.
.PHONY: fuzz-files
FILES ?= 100000
fuzz-files: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzzing_files $(FILES) $(or $(SEED),0) $(KIND)

# The paper's tables and figures, into docs/paper.md and docs/paper.html. With the authors' models, where they are at hand,
# beside models trained here; `make paper ONLY=results/heloc/xgb MODELS=dir` computes some cells, on other models.
.PHONY: paper
MODELS ?= $(realpath ../shared/data/models)
ifneq ($(DATA),)
paper: export GLOBECE_DATA ?= $(DATA)
endif
paper: $(VENV)/.installed-test
	$(BIN)/python -m experiments $(ONLY) $(if $(MODELS),--models $(MODELS)) $(PAPER)

# The adversary: random tables, models and questions for a while, on two processes. `make attack MINUTES=10 SEED=5000`.
.PHONY: attack
MINUTES ?= 30
SEED ?= 0
attack: $(VENV)/.installed-test
	$(BIN)/python -m tests.adversarial --minutes $(MINUTES) --start $(SEED) --json attack.json
