#!/bin/sh
# Builds stock nsqd and nsqlookupd v1.3.0 into OUTDIR and says how to hand them to the suites.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 OUTDIR" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
go build -o "$out/" github.com/nsqio/nsq/apps/nsqd github.com/nsqio/nsq/apps/nsqlookupd
echo "export NSQX_STOCK_NSQD=$out/nsqd NSQX_STOCK_NSQLOOKUPD=$out/nsqlookupd"
