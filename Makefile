# Skyband's commands. Each sets up what it needs first; `make help` lists them.
# ARGS is passed on: make demo ARGS="--engine embedded", make test ARGS="-k windows".

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

# The pinned packages have wheels for these; another interpreter can be named: make PYTHON=/path/to/python3.12 setup
PYTHONS   := python3 python3.14 python3.13 python3.12 python3.11
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

.PHONY: help demo test torture check docs setup format pins jar clean
.DEFAULT_GOAL := help

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## top 10 of a stream of trades, live, on Spark; ARGS=--ui to look at it in the browser, ARGS=--help for more
	@$(BIN)/skyband demo $(ARGS)

test: check ## everything CI runs: the checks, then all tests; ARGS="-k name" for some
	@$(BIN)/python -m compileall -q src  # for the hundreds of processes that tests start, also where none may write bytecode
	@echo "pytest, two workers: one for what needs Spark, one for the rest"
	@$(BIN)/pytest -n 2 --dist loadgroup $(ARGS)

torture: setup ## faults, damage and hostile input, minutes; ARGS=--long for hours; writes docs/reliability.md
	@PYTHONPATH=tests:$$PYTHONPATH $(BIN)/python -m torture $(ARGS)

check: setup ## lint, format, types, import layers; no tests
	@echo "ruff check"; $(BIN)/ruff check --quiet
	@echo "ruff format"; $(BIN)/ruff format --quiet --check || { echo "Not formatted: make format mends it."; exit 1; }
	@echo "mypy"; $(BIN)/mypy --no-error-summary
	@echo "lint-imports"; report=$$($(BIN)/lint-imports --no-logo --no-cache 2>&1) || { echo "$$report"; exit 1; }

docs: setup ## the documentation as a site, in site/<version>/; ARGS=serve shows it while you write
	@$(BIN)/zensical $(or $(ARGS),build --strict) --config-file mkdocs.yml
	@[ -n "$(ARGS)" ] || { $(BIN)/python tests/site_versions.py site; echo "The documentation, with all versions built here: python -m http.server -d site"; }

format: setup ## mend what ruff can mend
	@$(BIN)/ruff check --quiet --fix; $(BIN)/ruff format

setup: $(STAMP) ## install everything into .venv; again only when pyproject.toml or constraints.txt changed
	@:

$(STAMP): pyproject.toml constraints.txt
	@found=; for python in $(or $(PYTHON),$(PYTHONS)); do \
	  if "$$python" -c '$(SUPPORTED)' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "Skyband needs Python 3.11 to 3.14; tried: $(or $(PYTHON),$(PYTHONS))." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3.12 setup" >&2; exit 1; \
	fi; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "$$found has no venv module. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	  fi; \
	  echo "setup 1/3: .venv with $$("$$found" --version)"; \
	  "$$found" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "setup 2/3: uv, the installer"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@echo "setup 3/3: Spark, Java and the other packages (700 MB the first time)"
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --build-constraint constraints.txt \
	  --editable '.[dev]'
	@touch $@

# A fresh environment without constraints takes the newest of everything; hatchling and editables build the package itself.
pins: setup ## write constraints.txt anew, with the newest versions that pyproject.toml allows
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/pins
	@$(BIN)/uv pip install --quiet --python $(VENV)/pins --upgrade uv hatchling editables '.[dev]'
	@{ echo "# The exact versions that are installed and tested. Regenerate with: make pins"; \
	   $(BIN)/uv pip freeze --quiet --python $(VENV)/pins | grep -v '^skyband '; } > constraints.txt.new
	@mv constraints.txt.new constraints.txt && rm -rf $(VENV)/pins
	@echo "constraints.txt is new; now: make test"

jar: setup ## build the jar with the sieve from its Java source; needs a JDK 17
	@$(BIN)/python -m skyband.engines.spark.jvm.build

wheel: setup ## build the wheel, and try it in two new environments: as it is, and with [spark]
	@rm -rf build/wheel && $(BIN)/uv build --quiet --wheel --out-dir build/wheel --build-constraint constraints.txt
	@wheel=$$(ls "$$PWD"/build/wheel/*.whl); for extra in "" "[spark]"; do \
	  echo "skyband$$extra in a new environment"; \
	  $(BIN)/uv venv --quiet --clear --python $(BIN)/python build/wheel/env && \
	  $(BIN)/uv pip install --quiet --python build/wheel/env --constraint constraints.txt "skyband$$extra @ file://$$wheel" && \
	  (cd build/wheel && env -u PYTHONPATH env/bin/python ../../tests/wheel.py "$$extra") || exit 1; \
	done

# The core of the suite: what has no kernels to compile, which takes longer than all the rest.
lowest: setup ## install the lowest versions that pyproject.toml allows, and run the core of the suite with them
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	@$(BIN)/uv pip install --quiet --python build/lowest --resolution lowest-direct --editable . \
	  'pytest>=8,<9.2' 'pytest-rerunfailures>=15' 'pytest-xdist>=3.6' 'hypothesis>=6.100' 'pandas>=2.2' 'duckdb>=1.1' 'numba==0.65.1'
	@build/lowest/bin/python -m pytest -q $(or $(ARGS),-m "not spark" tests/sql/test_rejected.py tests/expressions tests/test_windows.py)

clean: ## remove caches and build leftovers; .venv stays
	@rm -rf build dist site spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
