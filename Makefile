# The two commands that do everything on a fresh machine: make demo, make test.
# Go (see go.mod) is all that they need. Where there is npm they build the live page,
# too; make test uses a C compiler for the race detector, Chromium for the page, npm to
# fetch a ClickHouse engine (178 MB, once), apt-get an old server (16 MB, once) and, for
# Java, a ZooKeeper (6 MB, once), where there are such.

GO      ?= go
BIN     := bin/auditor
TOOL    := $(GO) tool -modfile=tools/go.mod
FUZZ    ?= 30s
DEMO    ?=
RACE    := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)

.DEFAULT_GOAL := help
.PHONY: help build page demo samples test lint fuzz bench bench-replay bench-kafka bench-clickhouse bench-lab pgo record test-page screenshots test-recorded test-lab test-rig test-kafka test-cluster clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: page ## build bin/auditor, with the live page where there is npm
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) ./cmd/auditor

WEB  := dashboards/web
PAGE := $(WEB)/dist/page.js

page: ## build the live page alone
ifeq ($(shell command -v npm 2>/dev/null),)
	@echo "no npm: the live page is left out, and the program says so at /; all else is there" >&2; test -z "$$CI"
else
	@$(MAKE) -s $(PAGE) || { echo "the live page could not be built, and is as it was before or left out" >&2; test -z "$$CI"; }
endif

$(WEB)/node_modules/.package-lock.json: $(WEB)/package.json $(WEB)/package-lock.json
	@cd $(WEB) && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-retry-mintimeout=1000 --loglevel=error >/dev/null
	@touch $@

$(PAGE): $(WEB)/node_modules/.package-lock.json $(WEB)/build.mjs $(WEB)/tsconfig.json $(wildcard $(WEB)/src/*)
	@cd $(WEB) && npm run --silent check && npm run --silent build
	@touch $@

demo: build ## run everything on this machine: callers, broker, daemon (DEMO="--for 30s")
	@$(BIN) demo $(DEMO)

samples: build ## audit the shipped sample logs and print the reports
	@for log in nginx-json envoy-json; do \
		echo "== examples/logs/$$log.log"; \
		$(BIN) replay --config examples/$$log.yaml examples/logs/$$log.log || exit 1; \
		echo; \
	done

test: build lint ## check and run every test that needs nothing but this machine
ifeq ($(RACE),)
	@echo "no C compiler: the race detector is off" >&2
endif
	$(GO) test $(RACE) -shuffle=on -count=1 -timeout 20m ./...
	@$(MAKE) --no-print-directory test-page

CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

test-page: build ## test the live page in Chromium
	@if [ -n "$(CHROMIUM)" ] && [ -f $(PAGE) ] && [ -d $(WEB)/node_modules/playwright-core ]; then \
		CHROMIUM=$(CHROMIUM) node --test $(WEB)/test/*.test.mjs; \
	else \
		echo "SKIPPED: the live page is tested where there are npm and Chromium" >&2; test -z "$$CI"; \
	fi

screenshots: build ## take the pictures of the page in docs/ anew, from the demo
	@CHROMIUM=$(CHROMIUM) node $(WEB)/screenshot.mjs docs

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...

fuzz: ## run every fuzz target for FUZZ (30s) each
	GO="$(GO)" .ci/fuzz $(FUZZ)

bench: ## run the benchmarks ten times; compare two such files with benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count 10 ./keys ./ingest/... ./aggregate/... ./pipeline

bench-kafka: ## measure what the daemon costs per record from Kafka
	bash bench/kafka.sh

bench-clickhouse: ## measure writes, queries and sizes of a ClickHouse store, with its engine in the process
	$(GO) test -run '^$$' -bench ClickHouse -benchtime 10x -timeout 60m ./store
	$(GO) test -run '^$$' -bench ClickHouseStorage -benchtime 1x -timeout 30m ./cmd/auditor

bench-replay: ## measure the throughput of a replay beside DuckDB and a bare scan
	bash bench/replay.sh

bench-lab: ## play ten million arrivals, and want that in under a minute
	$(GO) test -run '^$$' -bench TenMillion -benchtime 1x ./lab

pgo: ## renew cmd/auditor/default.pgo, the profile that guides the compiler
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(GO) test -trimpath -run '^$$' -bench Replay -benchtime 20x -cpuprofile $$dir/replay -o $$dir/test ./pipeline && \
	$(GO) test -trimpath -run '^$$' -bench Parse -benchtime 200000x -cpuprofile $$dir/parse -o $$dir/test ./ingest/accesslog && \
	$(GO) tool pprof -proto $$dir/replay $$dir/parse > cmd/auditor/default.pgo

record: ## record the sample logs anew, from real nginx and Envoy
	$(GO) run ./examples/record -out examples/logs

test-recorded: ## record logs from real nginx, Envoy, HAProxy, Apache and Caddy, and audit those
	bash examples/record/test.sh
	bash examples/record/caddy.sh
	bash examples/record/envoy.sh

test-lab: ## hold the lab and the drill to their figures, and the audit of every arm in every format to the truth
	$(GO) test -count=1 -timeout 10m ./lab/...
	$(GO) test -count=1 -timeout 20m -run '^TestLabTruth$$' ./cmd/auditor

test-rig: ## hold the lab's model against a server and callers on real sockets, as a daemon sees them
	AUDITOR_RIG=1 $(GO) test -count=1 -timeout 9m -run '^TestRig$$' -v ./cmd/auditor

test-kafka: ## kill daemons that read from a real Kafka broker, and audit what is left
	$(GO) run ./ingest/kafkatest $(GO) test -count=1 -timeout 20m -run '^TestKafka' -v ./cmd/auditor

test-cluster: ## hold the ClickHouse store to all its promises on two replicas of old servers
	AUDITOR_CLUSTER=1 $(GO) test -count=1 -timeout 15m -run '^TestClusterConformance$$' -v ./store

clean: ## remove what was built and fetched
	rm -rf bin .cache $(WEB)/node_modules $(filter-out %/README,$(wildcard $(WEB)/dist/*))
