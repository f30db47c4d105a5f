#!/usr/bin/env bash
# distros.sh [CELL...]: install twoway on bare Debian systems and compare its captures with the checkout's. As root.
#
# A cell is RELEASE:WHO:WAY: 12, 13 or sid; root or user; deb or checkout. All by default. A system is made by mmdebstrap
# (variant minbase) once, kept in the cache as an archive, and unpacked anew for each cell. For `deb` the clock starts at apt's
# installation of the packages, whose lists apt has; for `checkout` at `make experiment`. Packages are built by `make deb` in a
# system of the release. Prints a row a cell: what it took, and whether all six captures have the checkout's bytes, as
# they must where the guest's kernel is the checkout's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
# shellcheck source=tests/distros/sums.sh
. "$here/sums.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/twoway/distros
scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/distros-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
declare -A suites=([12]=bookworm [13]=trixie [sid]=sid)

# bare RELEASE FOLDER: unpack a bare system.
bare() {
  local archive=$cache/${suites[$1]}.tar
  mkdir -p "$cache" "$2"
  if [ ! -f "$archive" ]; then
    echo "Debian $1: made by mmdebstrap ..." >&2
    # A mirror that has stopped at some day is good enough.
    mmdebstrap --quiet --variant=minbase --include=adduser --aptopt='Acquire::Check-Valid-Until "false"' \
      "${suites[$1]}" "$scratch/bare.tar"
    mv "$scratch/bare.tar" "$archive"
  fi
  tar -xf "$archive" -C "$2"
  cp /etc/resolv.conf "$2/etc/resolv.conf"
  inside "$2" useradd --create-home --shell /bin/bash tester
}

# inside FOLDER COMMAND...: run a command with the folder as its root and nobody else's processes.
inside() {
  unshare --mount --pid --ipc --uts --fork --kill-child "$here/inside.sh" "$@"
}

# settle FOLDER: give a system the certificates that this machine trusts, and what a checkout needs of root.
settle() {
  inside "$1" apt-get update -qq
  inside "$1" apt-get install -y -qq --no-install-recommends git make sudo ca-certificates > /dev/null 2>&1
  cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"
  echo 'tester ALL=(ALL) NOPASSWD: ALL' > "$1/etc/sudoers.d/tester"
  git clone --quiet "$checkout" "$1/home/tester/twoway"
  inside "$1" chown -R tester: /home/tester/twoway
}

# packages RELEASE: build the release's packages, unless dist/deb has those of this commit.
packages() {
  local made=$checkout/dist/deb/deb$1 system=$scratch/builder-$1
  if [ "$(cat "$made/REVISION" 2> /dev/null)" = "$(revision)" ]; then return; fi
  echo "Debian $1: make deb ..." >&2
  bare "$1" "$system"
  settle "$system"
  mkdir -p "$cache/builds-$1" "$system/root/.cache"
  rmdir "$system/root/.cache/twoway" 2> /dev/null || true
  mv "$cache/builds-$1" "$system/root/.cache/twoway"
  inside "$system" git config --global --add safe.directory '*'
  local built=0
  inside "$system" make -C /home/tester/twoway deb > "$scratch/deb-$1.log" 2>&1 || built=1
  mv "$system/root/.cache/twoway" "$cache/builds-$1"
  if [ $built -ne 0 ]; then tail -30 "$scratch/deb-$1.log" >&2; rm -rf "$system"; return 1; fi
  rm -rf "$made"
  mkdir -p "$(dirname "$made")"
  mv "$system/home/tester/twoway/dist/deb/deb$1" "$made"
  rm -rf "$system"
}

revision() {
  git -C "$checkout" describe --always --dirty --abbrev=12
}

# cell RELEASE WHO WAY: try one, and print its row.
cell() {
  local system=$scratch/system start installed=- reported user=root home=/root results
  if [ "$2" = user ]; then user=tester home=/home/tester; fi
  as_user=(setpriv --reuid "$user" --regid "$user" --init-groups env -C "$home" "HOME=$home" PATH=/usr/sbin:/usr/bin:/sbin:/bin)
  if [ "$3" = deb ]; then packages "$1"; fi
  bare "$1" "$system"
  if [ "$3" = deb ]; then
    cp "$checkout/dist/deb/deb$1"/*.deb "$system/tmp"
    inside "$system" apt-get update -qq
    start=$(date +%s)
    inside "$system" sh -c 'cd /tmp && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq ./capture-analysis_*.deb \
      ./twoway_*.deb ./twoway-guest_*.deb' > "$scratch/log" 2>&1 || { tail "$scratch/log" >&2; return 1; }
    installed=$(($(date +%s) - start)) results=$home/results
    inside "$system" sh -c '! command -v cc gcc clang > /dev/null'
    inside "$system" "${as_user[@]}" twoway run > "$scratch/log" 2>&1 || { tail "$scratch/log" >&2; return 1; }
  else
    settle "$system"
    if [ "$2" = root ]; then mv "$system/home/tester/twoway" "$system/root" && inside "$system" chown -R root: /root/twoway; fi
    start=$(date +%s) results=$home/twoway/results
    inside "$system" "${as_user[@]}" make -C twoway experiment > "$scratch/log" 2>&1 || { tail "$scratch/log" >&2; return 1; }
  fi
  reported=$(($(date +%s) - start))
  local found="the same bytes" kernel
  kernel=$(kernel_of "$system$results/latest")
  if ! sums "$system$results/latest" | diff -q - "$scratch/wanted" > /dev/null; then
    found="OTHER BYTES"
    if [ "$kernel" != "$(kernel_of "$scratch/here/latest")" ]; then found="others: Linux $kernel"; fi
  fi
  rm -rf "$system"
  echo "| $1 | $2 | $3 | $installed | $reported | $found |"
  if [ "$found" = "OTHER BYTES" ]; then return 3; fi
}

# kernel_of RUN: the release of its guest's kernel.
kernel_of() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["kernel"]["release"])' "$1/manifest.json"
}

if [ $# -eq 0 ]; then
  for way in deb checkout; do
    for release in 12 13 sid; do set -- "$@" "$release:root:$way" "$release:user:$way"; done
  done
fi
"$checkout/.venv/bin/twoway" run kalampoukas-5.2 --results "$scratch/here" > /dev/null 2>&1
sums "$scratch/here/latest" > "$scratch/wanted"
echo "| Debian | who | way | installed, s | first report, s | captures |"
echo "|---|---|---|---|---|---|"
status=0
for each; do
  IFS=: read -r release who way <<< "$each"
  set +e # else a failure within the cell would not end it
  (set -e; cell "$release" "$who" "$way")
  ended=$?
  set -e
  if [ $ended -ne 0 ]; then status=1; fi
  if [ $ended -ne 0 ] && [ $ended -ne 3 ]; then echo "| $release | $who | $way | | | FAILED |"; fi
  rm -rf "$scratch/system"
done
exit $status
