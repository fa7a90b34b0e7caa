# Ownfeed: `make demo` runs it, `make test` proves it. `make help` lists everything.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where pip would bring torch's CUDA build, name PyTorch's CPU wheel index here (docs/commands.md, "torch without CUDA").
TORCH_INDEX ?=
DATA ?= var/demo
# Of `make fuzz-bytes`, for each of ten readers, and of `make load`, for each form of the server
MINUTES ?= 5
# pip would compile 30,000 files one after the other; on all cores that takes half as long on two
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
# The browser's device, if its sources have changed; without it all else runs, and /reader/ says what is missing
BUILD_DEVICE := $(BIN)/python web/build_device.py || true

.DEFAULT_GOAL := help
.PHONY: help demo setup setup-dev test qa check fuzz fuzz-bytes load bench format lock sbom clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: setup ## set everything up and run backend, your own device and 60 simulated readers
	@exec $(BIN)/ownfeed demo --data-dir $(DATA)

setup: $(VENV)/.server ## virtual environment with what running needs, and the browser's device
	@$(BUILD_DEVICE)

setup-dev: $(VENV)/.dev ## the same with what tests and checks need
	@$(BUILD_DEVICE)

$(VENV)/.torch: constraints.txt
	@echo "Setting up $(VENV) (once; a few minutes, most of it torch) ..."
	@$(PYTHON) -c 'import sys; sys.exit("Ownfeed needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	@# torch first and alone: what needs it must find the CPU build in place
	@$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$$(grep '^torch==' constraints.txt)"
	@touch $@

$(VENV)/.server: $(VENV)/.torch pyproject.toml constraints.txt
	@$(PIP) --constraint constraints.txt --editable '.[server]'
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml constraints.txt
	@$(PIP) --constraint constraints.txt --editable '.[dev]'
	@$(COMPILE)
	@touch $(VENV)/.server $@

test: ## set up and run all tests
	@# programs and packages at the same time: both wait for downloads
	@sh tests/install_programs.sh & programs=$$!; $(MAKE) --no-print-directory setup-dev; made=$$?; \
		wait $$programs && exit $$made
	@# bytecode is kept whatever the environment says: without it every worker and every process a test starts compiles all
	@# files in their order: the long ones lie in the folders that come first, so that no worker waits long for the other
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

qa: setup-dev ## the long and random tests: kills at many points, fuzzing, a fleet's load, the longest exhaustive tests; hours
	@$(BIN)/python -m pytest -n 2 --dist loadfile --timeout 3600 tests/qa
	@OWNFEED_LONG_TESTS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --timeout 3600 -m long_form
	@for name in reader operator server servers database storage disk-reader disk-operator disk-server clocks files; do \
		$(BIN)/python -m tests.qa.faults $$name --points 20 || exit 1; done
	@$(BIN)/python -m tests.qa.fuzz all --minutes $(MINUTES)

check: setup-dev ## style, types, and who may import whom
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@cd web && npm ci --silent --no-audit --no-fund && npm run --silent check

fuzz: setup-dev ## send 20,000 generated requests to each app that has an OpenAPI
	@OWNFEED_OPENAPI_EXAMPLES=20000 $(BIN)/python -m pytest --timeout 0 tests/integration/test_*_openapi.py

fuzz-bytes: setup-dev ## fuzz every reader of bytes for MINUTES (5) each, on Linux
	@$(BIN)/python -m tests.qa.fuzz all --minutes $(MINUTES)

load: setup-dev ## a fleet's requests, 100 a second for MINUTES (5): one process on SQLite, then two on PostgreSQL; Linux
	@$(PIP) --constraint constraints.txt --editable '.[dev,load]'
	@$(BIN)/python -m tests.qa.load --minutes $(MINUTES)
	@$(BIN)/python -m tests.qa.load --minutes $(MINUTES) --workers 2 --postgresql

bench: setup-dev ## measure embedding, index, recall, latency, rounds, secure sum; `ownfeed bench all` measures all, in a day
	@$(BIN)/ownfeed bench short

format: setup-dev ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: setup-dev ## write requirements.txt and requirements-torch.txt anew, each file by its hash
	@$(PIP) --constraint constraints.txt uv
	@$(BIN)/python tests/contracts/test_supply_chain.py

sbom: setup-dev ## write the bills of materials of what is installed, and of the browser's device, in CycloneDX to var/sbom
	@$(PIP) --constraint constraints.txt cyclonedx-bom
	@mkdir -p var/sbom
	@$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible -o var/sbom/python.json $(BIN)/python
	@cd web && npm sbom --sbom-format cyclonedx --package-lock-only > ../var/sbom/browser.json
	@echo "var/sbom/python.json and var/sbom/browser.json are written"

clean: ## remove the environment and caches; the demo's data in var/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .graphs_cache .import_linter_cache web/node_modules web/static/device
