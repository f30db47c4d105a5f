# twoway: two-way TCP on the real Linux kernel, in virtual time. `make help` lists the targets.

EXP        ?= kalampoukas-5.2
SECONDS    ?= 1800
PYTHON     ?= /usr/bin/python3
UV_VERSION := 0.13.8
# Of its wheel for x86_64 with glibc: `pip download --no-deps uv==$(UV_VERSION) && pip hash uv-*.whl`.
UV_SHA256  := e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984
CACHE      := $(or $(XDG_CACHE_HOME),$(addsuffix /.cache,$(HOME)),$(error no home folder: set HOME or XDG_CACHE_HOME))/twoway
UV         := $(CACHE)/uv-$(UV_VERSION)/bin/uv
BIN        := .venv/bin
SHELL      := /bin/bash
.SHELLFLAGS := -euo pipefail -c
# With it each worker of pytest, and each command that a test starts, would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# One more than processors: tests wait a fourth of their time, for a browser, a clock or a lock.
PYTEST     := $(BIN)/pytest --numprocesses $(shell echo $$(($$(nproc) + 1))) --no-loadscope-reorder --durations 5
# Those below; pyproject.toml lists the marks of tests.
LAYERS     := $(shell sed -n 's/^layer-\([a-z]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
.DEFAULT_GOAL := help

$(if $(filter-out $(LAYERS),$(LAYER)),$(error LAYER: must be one of $(LAYERS), got $(LAYER)))

##@ Use
experiment: setup $(if $(filter qemu%,$(VM)),qemu-packages) ## run an experiment (EXP=kalampoukas-5.2), in virtual time or VM=qemu, and report
	@$(BIN)/twoway run $(EXP) $(if $(VM),--backend $(VM))

papers: setup ## every experiment of five papers, and the reproduction report into results/papers
	@$(BIN)/twoway papers

results: setup ## the same, and its numbers into docs/results (OF="EXPERIMENT..." for some)
	@$(BIN)/twoway papers $(OF)
	@$(BIN)/python docs/results_kept.py results/papers
	@$(BIN)/python docs/results_noticed.py
	@$(BIN)/python docs/results_page.py

# A point of each paper that a clock on which work takes time can tell something of.
WITNESSED := experiments/lab/kalampoukas-5.2-tenth.yml zhang-fig8 barakat-fig2@upstream=1.5 \
	dtm-fig2 experiments/lab/fast-ex5-tenth.yml
witness: setup qemu-packages ## a point of each paper on Debian's own kernel, in QEMU, into docs/results/witness
	@$(BIN)/twoway papers $(WITNESSED) --backend qemu --results results/witness
	@mkdir -p docs/results/witness
	@cp results/witness/papers/{summary.json,claims.csv,predictions.csv} docs/results/witness/
	@$(BIN)/python docs/results_page.py

hidden: setup ## twenty findings on the papers' TCP and on Linux's own, into docs/hidden.md
	@$(BIN)/twoway build --kernel newest
	@$(BIN)/python docs/hidden_page.py run

atlas: setup ## what TCP does in fifty situations on three kernels, into docs/atlas.md (OF="syn-retries ..." prints some)
	@for kernel in 6.1 wide newest-tun; do $(BIN)/twoway build --kernel $$kernel; done
	@$(BIN)/python docs/atlas_page.py run $(OF)

results-page: env ## docs/results: claims by today's files, and the page of its tables
	@$(BIN)/python docs/results_kept.py
	@$(BIN)/python docs/results_page.py

schemas: env ## the JSON Schemas that editors read, into twoway/schemas
	@for kind in experiment profile suite; do $(BIN)/twoway schema $$kind > twoway/schemas/$$kind.json; done

report: setup ## analyse the latest run again and rewrite its report
	@$(BIN)/twoway report

list: setup ## all experiments
	@$(BIN)/twoway list

manual: setup ## the manual of capture-analysis, with pictures of a run, into results/manual
	@$(BIN)/twoway run kalampoukas-5.2 --results results/manual-run > /dev/null
	@$(BIN)/python capture-analysis/docs/build.py results/manual \
		results/manual-run/latest/pcap/h1-eth0.pcap.zst \
		results/manual-run/latest/pcap/h2-eth0.pcap.zst
	@echo results/manual/index.html

pictures: setup ## the pictures of README and the site, into docs/assets
	@$(BIN)/python docs/pictures.py

docs: setup docs-env notebook-env ## all documents as a site, with a generated reference and notebooks that it runs (SHORT=1: does not run), into results/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	@echo results/docs/index.html

shell: setup ## the experiment's network in the guest, with Mininet's prompt
	@$(BIN)/twoway shell $(EXP)

calibrate: setup ## measure the error floor of every link profile
	@$(BIN)/twoway calibrate

doctor: env ## what this machine can do, and what is missing
	@$(BIN)/twoway doctor

##@ Check
unit: .venv/.synced ## 45 s: what needs no guest, no kernel and little time
	@$(PYTEST) --quiet --ignore tests/guest -m "not guest and not slow"

test: $(if $(LAYER),layer-$(LAYER),setup test-packages notebook-env) ## 12 minutes: what must hold, on the real kernel and in a real browser; LAYER=... for one of those below
	@$(if $(LAYER),:,$(PYTEST))

check: lint lint-kernel docs test $(addprefix layer-,long sanitized newest smp lab) ## hours: lint, documents, and every test but fuzzing and those that need root

#: LAYER=long       playbooks on hosts made of namespaces; killed workers; full disks; wheels; C; 8 times the examples; kernel: wide (SHORT=1: without its build)
layer-long: setup test-packages notebook-env
ifndef SHORT
	@$(BIN)/twoway build --kernel wide
endif
	@EXAMPLES=200 $(PYTEST) -m "(long or hypothesis) and not sanitized"

#: LAYER=sanitized  the modules under KASAN, lockdep and others; fuzz; KUnit (SHORT=1: what is soon over)
layer-sanitized: env test-packages
	@$(BIN)/twoway build --sanitized
ifdef SHORT
	@$(PYTEST) --guest sanitized -m "not long" tests/guest/test_sanitized.py
else
	@$(MAKE) --no-print-directory -C kernel-modules check ARCH=um TWOWAY_TESTS=m \
		KDIR=$$($(BIN)/twoway build --sanitized --kernel-dir)
	@$(PYTEST) --guest sanitized -m "" tests/guest/test_sanitized.py \
		tests/guest/test_dtm_tc.py tests/guest/test_tahoe.py tests/guest/test_testbed.py
endif

#: LAYER=newest     the modules on Debian's newest kernel, patched by vm/patches/upstream; experiments and the clock on 6.1
layer-newest: env test-packages
	@$(BIN)/twoway build --kernel 6.1
	@$(PYTEST) --guest 6.1 -m "" tests/guest/test_newest.py tests/guest/test_clock.py
	@$(BIN)/twoway build --kernel newest
	@$(PYTEST) --guest newest -m "" tests/guest/test_newest.py tests/guest/test_clock.py \
		tests/guest/test_dtm_traffic.py \
		tests/guest/test_dtm_tc.py tests/guest/test_fast.py tests/guest/test_fixed.py tests/guest/test_tahoe.py

#: LAYER=smp        the modules on four processors, with KASAN and lockdep, then KCSAN
layer-smp: env test-packages smp-packages
	@$(BIN)/pytest -m smp --verbose --capture=no tests/smp

#: LAYER=lab        stock kernels in QEMU, the playbooks on a machine there, twoway bisect; long
layer-lab: setup test-packages qemu-packages lab-packages
	@$(BIN)/pytest -m lab --verbose --capture=no

#: LAYER=distros    packages and a bare checkout on bare Debian systems (as root; CELLS="12:user:deb ..."); long
layer-distros: env
	@tests/distros/distros.sh $(CELLS)

#: LAYER=image      the OCI image in containers that allow less and less (as root, with podman; make image first)
layer-image: env
	@tests/distros/image.sh

mutation: env ## change the code that measures and judges, and report changes no test notices (NUMBER=100 of them, 0: all; FILES=...)
	@$(BIN)/python tests/mutation/mutate.py $(if $(NUMBER),--number $(NUMBER)) $(FILES)

lint: env test-packages ## style, types, layers, every experiment, predictions as committed: ruff, mypy, lint-imports, yamllint, ansible-lint, shellcheck
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/twoway vet > /dev/null
	@$(BIN)/twoway predict --check
	@$(BIN)/yamllint --strict experiments tc-profiles kernel-modules/tests/{dtm,tdc} playbooks
	@cd playbooks && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint --offline -q --profile production
	@shellcheck vm/install-packages vm/headers/cc .ci/run kernel-modules/tests/fetch-headers tests/support/lab/*.sh \
		vm/fetch-source packaging/{ci-step,make-deb,make-image} debian/depends debian/man-pages debian/completions \
		tests/distros/*.sh $$(find playbooks -path '*/files/*' -type f)

lint-kernel: setup test-packages ## the modules: checkpatch, sparse, W=1
	@$(MAKE) --no-print-directory -C kernel-modules check ARCH=um KDIR=$$($(BIN)/twoway build --kernel-dir)

# With KEEP=1 what a benchmark prints goes into docs/speed.md, too.
KEPT = $(if $(KEEP),| $(BIN)/python docs/speed_page.py $(@:bench-of-%=%))

bench: $(addprefix bench-of-,$(or $(OF),captures instructions ns3 speed)) ## speed, medians of five runs, into docs/speed.md with KEEP=1; OF=captures (MEMORY=10e9), instructions, ns3, ns2 (NS2=FOLDER), speed, dctcp or lab (as root)

bench-of-speed: setup qemu-packages
	@PYTHONPATH=tests $(BIN)/python bench/speed.py $(KEPT)

bench-of-ns3: setup bench-packages
	@$(BIN)/python bench/beside_ns3.py $(KEPT)

bench-of-dctcp: setup bench-packages
	@$(BIN)/python bench/beside_ns3_dctcp.py $(KEPT)

bench-of-ns2: env
	@$(BIN)/python bench/beside_ns2.py $(NS2) $(KEPT)

bench-of-captures: setup test-packages
	@PYTHONPATH=bench $(BIN)/python bench/captures/bench_captures.py $(if $(MEMORY),--memory $(MEMORY),$(KEPT))

bench-of-instructions: setup test-packages
	@$(BIN)/python bench/captures/instructions.py $(if $(KEEP),--keep)

bench-of-lab: setup
	@PYTHONPATH=tests $(BIN)/python bench/lab_speed.py

fuzz: test-packages ## any bytes are a capture: fuzz its parser in C for SECONDS=1800
	@$(MAKE) --no-print-directory -C capture-analysis/clib fuzz SECONDS=$(SECONDS)

##@ Set up
setup: env ## packages, Python environment, guest kernel, modules: once, and what changed since
	@$(BIN)/twoway build

env: run-packages .venv/.synced

PACKAGES := run test qemu lab smp bench deb image

$(PACKAGES:%=%-packages): %-packages:
	@vm/install-packages $*

notebook-env: env
	@UV_PROJECT_ENVIRONMENT=.venv $(UV) sync --quiet --locked --inexact --group notebook --python $(PYTHON)

docs-env: env
	@UV_PROJECT_ENVIRONMENT=.venv $(UV) sync --quiet --locked --inexact --group docs --python $(PYTHON)

.venv/.synced: uv.lock pyproject.toml $(addprefix capture-analysis/,pyproject.toml setup.py) \
		$(wildcard capture-analysis/clib/*.[ch]) | $(UV)
	@echo "Python environment ..."
	@UV_PROJECT_ENVIRONMENT=.venv $(UV) sync --quiet --locked --compile-bytecode --python $(PYTHON)
	@touch $@

$(UV): | run-packages
	@mkdir -p $(CACHE)
	@$(PYTHON) -P -m venv $(CACHE)/uv-$(UV_VERSION)
	@$(CACHE)/uv-$(UV_VERSION)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--only-binary :all: --requirement <(echo "uv==$(UV_VERSION) --hash=sha256:$(UV_SHA256)")

uv: $(UV)
	@echo $(UV)

wheel: setup ## the packages capture-analysis, twoway and the ready guest as wheels, into dist/
	@rm -rf capture-analysis/build/lib* capture-analysis/build/bdist* dist/guest # of sources that are gone
	@$(UV) build --quiet --wheel --python $(PYTHON) --out-dir dist --all-packages
	@$(BIN)/twoway build --copy dist/guest
	@$(UV) build --quiet --wheel --python $(PYTHON) --out-dir dist packaging/guest
	@ls dist/*.whl

deb: run-packages deb-packages ## Debian packages for this release: guest ready-made, no compiler needed; into dist/
	@packaging/make-deb

lint-deb: deb ## the packages: lintian, minutes
	@lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs dist/deb/*/*.changes

image: deb image-packages ## an OCI image for podman and docker, with those packages; into dist/ (as root)
	@packaging/make-image

clean: ## remove the environment and what was packed; keep results and the cache of built kernels
	rm -rf .venv dist capture-analysis/build .mypy_cache .pytest_cache .ruff_cache

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^#: / {printf "    %s\n", substr($$0, 4)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  KERNEL_SRC=/path/to/linux makes the guest from another kernel tree, 6.12 or newer."

.PHONY: experiment papers results witness hidden atlas schemas report list manual docs shell calibrate doctor unit test check $(LAYERS:%=layer-%) \
	mutation lint lint-kernel bench $(addprefix bench-of-,captures instructions ns3 speed dctcp lab) fuzz setup env docs-env notebook-env \
	$(PACKAGES:%=%-packages) uv wheel deb lint-deb image clean help
