#!/usr/bin/env bash
# Checks that need more than the tests do: other engines read an exported dataset, a browser renders the reports.
# What can't be installed here (no network, no Java, not root) is skipped and named; what runs must pass.
#
# Usage: bash tests/optional.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1

# A folder that outlives the checkout. Each package is tried by itself, and again the next time where it failed.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/vramscope/python"
python="$cache/bin/python"
[ -x "$python" ] || python3 -m venv "$cache" || { echo "skipped: no Python environment can be made"; exit 0; }
for package in duckdb polars pyspark html5lib pillow; do
  module=${package/pillow/PIL}
  [ -d "$(echo "$cache"/lib/python3*/site-packages)/$module" ] ||
    timeout 240 "$python" -m pip install --quiet --retries 0 --timeout 20 --disable-pip-version-check "$package" ||
    echo "skipped: $package can't be installed"
done
if ! command -v chromium-headless-shell chromium chromium-browser google-chrome >/dev/null &&
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  DEBIAN_FRONTEND=noninteractive timeout 240 apt-get install -y -qq --no-install-recommends \
    chromium-headless-shell fonts-dejavu-core >/dev/null 2>&1 || echo "skipped: Chromium can't be installed"
fi

"$python" tests/tables.py "$program"
"$python" tests/browser.py "$program"
