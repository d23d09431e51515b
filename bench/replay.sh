#!/usr/bin/env bash
# Compares the auditor's throughput with DuckDB's and with a bare scan, over one
# generated log: see bench/run for what is measured, bench/gen for the log.
#
#   bash bench/replay.sh             2 threads, 3 interleaved runs, 2 million lines
#   THREADS=1 RUNS=5 N=500000 bash bench/replay.sh
#
# DuckDB needs cgo and a C++ linker. The exit status is 0 only if all programs
# were measured and their counts agree with the generator's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

threads=${THREADS:-2} runs=${RUNS:-3} n=${N:-2000000} span=${SPAN:-1h} seed=${SEED:-1}
dir=$PWD/.cache/bench
mkdir -p "$dir"

say() { printf '%s\n' "bench: $*" >&2; }

auditor=$dir/auditor duckdb=$dir/duckdb
rm -f "$auditor" "$duckdb"
if ! go build -o "$auditor" ./cmd/auditor; then
	say "./cmd/auditor does not build: THE AUDITOR IS NOT MEASURED, only what it is to be compared with"
	auditor=
fi
if ! (cd bench/duckdb && CGO_ENABLED=1 go build -o "$duckdb" .); then
	say "bench/duckdb does not build (it needs cgo and a C++ linker): DUCKDB IS NOT MEASURED"
	duckdb=
fi
go build -o "$dir/gen" ./bench/gen
go build -o "$dir/scan" ./bench/scan
go build -o "$dir/run" ./bench/run

"$dir/gen" -n "$n" -span "$span" -seed "$seed" -out "$dir"
exec "$dir/run" -dir "$dir" -threads "$threads" -runs "$runs" \
	-auditor "$auditor" -duckdb "$duckdb" -scan "$dir/scan"
