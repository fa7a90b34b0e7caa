#!/bin/sh
# Installs what the tests run besides Python packages, where it is missing: Chromium without windows, PostgreSQL, nginx
# and Caddy, from Debian's packages.
# What comes from npm, web/build_device.py installs, which `make setup-dev` runs.
set -eu
missing=""
command -v chromium-headless-shell >/dev/null 2>&1 || command -v chromium >/dev/null 2>&1 ||
  command -v chromium-browser >/dev/null 2>&1 || missing="$missing chromium-headless-shell"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || missing="$missing postgresql"
for proxy in nginx caddy; do
  command -v "$proxy" >/dev/null 2>&1 || [ -x "/usr/sbin/$proxy" ] || missing="$missing $proxy"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
  echo "Please install:$missing. The tests that need them will be skipped by name." >&2
  exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "Please install as root:$missing. The tests that need them will be skipped by name." >&2
    exit 0
  fi
  as_root=sudo
fi
echo "Installing$missing ..."
$as_root apt-get update -qq
# other systems of Debian's kind have no such package
apt-cache show chromium-headless-shell >/dev/null 2>&1 || missing=$(echo "$missing" | sed s/-headless-shell//)
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
