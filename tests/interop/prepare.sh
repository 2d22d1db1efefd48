#!/bin/sh
# Builds every interoperability client into DIR and says how to hand them to the suites.
#
# A language whose tools are missing is left out, or is a failure with NSQX_REQUIRE_INTEROP=1.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi
sources=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

# has LANGUAGE TOOL...: true when all tools are there.
has() {
    language=$1
    shift
    for tool in "$@"; do
        if ! command -v "$tool" >/dev/null; then
            echo "skipped: no $tool for the $language client" >&2
            [ "${NSQX_REQUIRE_INTEROP:-}" != 1 ] || exit 1
            return 1
        fi
    done
}

if has Go go; then
    (cd "$sources/go" && go build -o "$out/go/client" .)
fi

if has Python python3; then
    python3 -m venv "$out/python"
    install="$out/python/bin/python -m pip install -q --disable-pip-version-check --require-hashes"
    $install -r "$sources/python/requirements-build.txt"
    $install -r "$sources/python/requirements.txt" --no-build-isolation
fi

if has Node.js node npm; then
    mkdir -p "$out/node"
    cp "$sources/node/package.json" "$sources/node/package-lock.json" "$out/node/"
    npm ci --prefix "$out/node" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
fi

if has Java java javac mvn; then
    mvn -B -q -f "$sources/java/pom.xml" -Dout="$out/java" compiler:compile dependency:copy-dependencies >&2
fi

if has Rust cargo; then
    cargo build -q --locked --manifest-path "$sources/rust/Cargo.toml" --target-dir "$out/rust/target"
    cp "$out/rust/target/debug/client" "$out/rust/client"
fi

echo "export NSQX_INTEROP_DIR=$out"
