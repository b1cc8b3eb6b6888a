#!/usr/bin/env bash
# Installs what the tests need on Debian and Ubuntu, then runs them all. Arguments go to `cargo test`.
#
# Image snapshots are drawn in software (Mesa), the end-to-end test runs the real window under Xvfb.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  libegl1 libgl1 libgl1-mesa-dri libx11-6 libxcursor1 libxi6 libxkbcommon-x11-0 libxrandr2
  mesa-vulkan-drivers python3 python3-xlib xdotool xvfb
)
if command -v apt-get >/dev/null; then
  missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
  fi
fi

cargo test --locked "$@"
