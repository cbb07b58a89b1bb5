# `make demo` and `make test` need nothing but Python 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
DEMO_SECONDS ?= 15
FAMILIES := family:cifar10 family:nmt family:ptb family:transformer
# Fewer groups than `auto` makes. The policy that ships has learned on as many by the papers' rules.
TRAIN := $(BIN)/placeto train --updates 8000 --grouping 128 --pooling none \
	--cluster k80x2 k80x4 k80x8 k80x2-cpu
# That of steps of several microbatches, on clusters of today and of two hosts, too.
TRAIN_PIPELINED := $(BIN)/placeto train --updates 3000 --checkpoint-every 250 --grouping 128 \
	--cluster k80x2 k80x4 k80x8 local-2 a100x8 p3.8xlarge-2 --per-graph 2
QUICK := $(addprefix tests/, bounds envs heuristics placers/exact search simulation cli/test_place.py \
	test_cluster.py test_contraction.py test_graph.py test_grouping.py test_layering.py test_problem.py) \
	--ignore=tests/envs/test_measuring.py

.PHONY: demo test quick test-deep lint format docs dist graphs results papers instances speed measured \
	pipelines torch families policy transfer ray report-pictures notebook schemas lock clean

demo: $(INSTALLED)
	$(BIN)/placeto compare inception_v3 --cluster k80x4 --budget $(DEMO_SECONDS) \
		--output demo.json --save demo

test: $(INSTALLED) $(VENV)/browser
	$(BIN)/python -m pytest -n 2 --dist worksteal

# What needs no worker of TensorFlow, no Ray, browser, site or wheel, on fewer random problems; under
# a minute once it is compiled.
quick: $(INSTALLED)
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n 2 --dist worksteal $(QUICK)

# Thousands of random problems instead of hundreds.
test-deep: $(INSTALLED)
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest tests/simulation tests/bounds

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation, in build/site.
docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict

# Wheel and source distribution, in dist.
dist: $(INSTALLED)
	$(BIN)/python -m build

# The bundled graphs again; the same bytes come out.
graphs: $(INSTALLED)
	$(BIN)/python -m placeto.extraction.bundled

# The table of placers and its picture, and ways to decode a policy; about 20 minutes.
results: $(INSTALLED)
	$(BIN)/python -m benchmarks.placers
	$(BIN)/python -m benchmarks.groups
	$(BIN)/python -m benchmarks.decodings
	$(BIN)/python -m benchmarks.readme

# The papers' tables with ours beside them; about 80 minutes. It goes on where it was stopped.
papers: $(INSTALLED)
	$(BIN)/python -m benchmarks.papers

# Thirty small problems with proven optima, and how near to them searches come; half an hour. Forty
# large ones with the best that is known, which is searched for once more; half an hour.
instances: $(INSTALLED)
	$(BIN)/python -m benchmarks.instances
	$(BIN)/python -m benchmarks.named_instances
	$(BIN)/python -m benchmarks.readme

# How fast things are, beside what they are compared with.
# About ten minutes on a quiet machine.
speed: $(INSTALLED)
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.readme

# What is simulated against what is run for real, on two workers; three hours on a machine
# that does nothing else. It goes on where it was stopped.
measured: $(INSTALLED)
	$(BIN)/python -m benchmarks.runtime
	$(BIN)/python -m benchmarks.fidelity
	$(BIN)/python -m benchmarks.kernels
	$(BIN)/python -m benchmarks.loop
	$(BIN)/python -m benchmarks.measured_groups
	$(BIN)/python -m benchmarks.measured_training
	$(BIN)/python -m benchmarks.readme

# What pipelines win, on two workers and in the simulator; hours on a machine that does nothing
# else. It goes on where it was stopped.
pipelines: $(INSTALLED)
	$(BIN)/python -m benchmarks.pipelines
	$(BIN)/python -m benchmarks.simulated_pipelines
	$(BIN)/python -m benchmarks.ranks
	$(BIN)/python -m benchmarks.throughput

# Pipelines of PyTorch modules, every split of six, run; an hour on a machine that does nothing else.
# It goes on where it was stopped.
torch: $(INSTALLED)
	$(BIN)/python -m benchmarks.torch_pipelines

# The graphs of the families, in the cache; ten minutes, once.
families: $(INSTALLED)
	for family in $(FAMILIES) family:pipelined; do $(BIN)/placeto extract $$family || exit; done

# The policies that ship, trained again; about 40 minutes each on two cores. It goes on where it was
# stopped.
policy: families
	$(TRAIN) --graphs $(FAMILIES) --seed 1 --output build/policy
	cp build/policy/policy.json placeto/data/policies/placeto.json
	cp build/policy/policy.safetensors placeto/data/policies/placeto.safetensors
	$(TRAIN_PIPELINED) --graphs family:pipelined --seed 1 --output build/policy-pipelined
	for kind in json safetensors; do \
		cp build/policy-pipelined/policy.$$kind placeto/data/policies/placeto-pipelined.$$kind; done

# What the policies that ship find on graphs that they were not trained on; an hour, and it goes on
# where it was stopped.
transfer: $(INSTALLED)
	$(BIN)/python -m benchmarks.transfer

# What one, two and four workers of Ray gain.
ray: $(INSTALLED)
	$(BIN)/python -m benchmarks.ray_scaling

# The pictures of a report.
report-pictures: $(INSTALLED) $(VENV)/browser
	$(BIN)/python -m benchmarks.report_pictures

# The notebook of the docs, with what it shows.
notebook: $(INSTALLED)
	$(BIN)/python -m pip install --quiet ipykernel nbclient
	PYTHONWARNINGS=ignore $(BIN)/jupyter execute --inplace docs/agent_in_a_minute.ipynb

# The JSON Schemas of the docs.
schemas: $(INSTALLED)
	$(BIN)/python docs/schemas.py

# Every version, for `make` to install by. Four are pinned by hand: the newest would not fit
# together, or not every Python from 3.11.0 on.
lock: $(INSTALLED)
	mkdir -p build
	printf 'torch==2.13.0\ntensorflow-cpu==2.21.0\ngymnasium==1.2.2\npymdown-extensions==12.3\n' > build/pins.txt
	$(BIN)/pip-compile --quiet --extra all --extra dev --strip-extras --allow-unsafe \
		--no-emit-index-url --no-emit-find-links --no-annotate --no-header \
		--constraint build/pins.txt --output-file build/requirements.lock pyproject.toml
	sed -e 's/+cpu$$//' -e '/^placeto @/d' build/requirements.lock > requirements.lock

$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "placeto needs Python 3.11 or later; set PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable '.[dev]'
	touch $@

# A browser for the tests of reports, unless the machine has one. Where none can be got, all other
# tests still run.
$(VENV)/browser: | $(INSTALLED)
	-$(BIN)/python -m benchmarks.browser && mkdir -p $@

clean:
	rm -rf $(VENV) build dist demo demo.json
