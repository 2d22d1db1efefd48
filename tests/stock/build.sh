#!/bin/sh
# Builds stock nsqd, nsqlookupd and the tools that the documents show, v1.3.0, into OUTDIR, and says how to hand
# them to the suites.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 OUTDIR" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
for program in nsqd nsqlookupd nsq_stat nsq_tail to_nsq; do
    go build -o "$out/" "github.com/nsqio/nsq/apps/$program"
done
echo "export NSQX_STOCK_NSQD=$out/nsqd NSQX_STOCK_NSQLOOKUPD=$out/nsqlookupd"
