#!/usr/bin/env bash
# Measures what the daemon costs per record from Kafka, beside a replay of the same
# records and a consumer that drops them: see bench/kafka.
#
#   bash bench/kafka.sh              2,000,000 records of 90 seconds, 3 rounds
#   RUNS=5 N=1000000 SPAN=2m bash bench/kafka.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
n=${N:-2000000} span=${SPAN:-90s} seed=${SEED:-1} runs=${RUNS:-3}
dir=$PWD/.cache/bench-kafka
mkdir -p "$dir"
go build -o "$dir/auditor" ./cmd/auditor
go build -o "$dir/gen" ./bench/gen
go build -o "$dir/kafka" ./bench/kafka
"$dir/gen" -n "$n" -span "$span" -seed "$seed" -out "$dir"
"$dir/kafka" compare -dir "$dir" -auditor "$dir/auditor" -runs "$runs"
echo
for rate in 10000 100000; do
	"$dir/kafka" latency -dir "$dir" -auditor "$dir/auditor" -rate $rate
done
