#!/usr/bin/env bash
# Records logs from real nginx and Envoy into .cache and holds the auditor's
# report of them against what the callers and the application counted. Then it
# does so, record by record, with the other servers that are installed, and with
# nginx, HAProxy and Envoy sending their logs to the daemon by syslog and by gRPC.
#
# The recording is checked against itself first: on a machine that stalls, a
# caller may leave a moment later than it meant to. Then it is recorded again, at
# most twice; a fault of the auditor shows every time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
logs=$PWD/.cache/recorded
for try in 1 2 3; do
	rm -rf "$logs" && mkdir -p "$logs"
	go run ./examples/record -out "$logs"
	if AUDITOR_RECORDED=$logs go test -count=1 ./examples; then
		break
	elif [ "$try" = 3 ]; then
		echo "three recordings do not agree with themselves" >&2
		exit 1
	fi
done
AUDITOR_RECORDED=$logs go test -count=1 -run 'TestRecorded' -v ./cmd/auditor
go test -count=1 -run 'TestServer' -v ./cmd/auditor
AUDITOR_ENVOY=$PWD/.cache/envoy/envoy/_bin/envoy go test -count=1 -timeout 2m -run 'TestEnvoyLive' -v ./cmd/auditor
