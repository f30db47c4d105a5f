#!/usr/bin/env bash
# image.sh: run twoway in the image of `make image`, in containers that allow less and less, and compare its captures with the
# checkout's. As root, with podman and crun.
#
# Prints a row a container: the options of `podman run`, what held the guest, what it took, and whether all six captures have
# the checkout's bytes.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/distros/sums.sh
. "$checkout/tests/distros/sums.sh"
# crun refuses a machine with both versions of cgroups; the mount goes in this script's mount namespace alone.
if mountpoint -q /sys/fs/cgroup/unified; then
  if [ -z "${PRIVATE:-}" ]; then PRIVATE=1 exec unshare --mount "$0"; fi
  umount /sys/fs/cgroup/unified
fi
scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/image-XXXXXX")
podman=(podman --root "$scratch/root" --runroot "$scratch/run" --storage-driver vfs --cgroup-manager cgroupfs --events-backend file)
trap '"${podman[@]}" rmi --all --force > /dev/null 2>&1 || true; rm -rf "$scratch"' EXIT
# Limits below this machine's own, which podman may not be able to raise.
run=("${podman[@]}" run --rm --cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 --network none)
status=0

# What docker's default profile refuses and podman's does not: namespaces, and mounts.
profile() {
  python3 - /usr/share/containers/seccomp.json << 'END'
import json, sys
profile = json.load(open(sys.argv[1]))
refused = {"clone", "clone3", "mount", "pivot_root", "setns", "umount", "umount2", "unshare"}
refused |= {"fsconfig", "fsmount", "fsopen", "fspick", "mount_setattr", "move_mount", "open_tree"}
for rule in profile["syscalls"]:
    rule["names"] = [name for name in rule["names"] if name not in refused]
namespaces = {"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"]] + [
    {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [namespaces]},
    {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    {"names": ["mount", "setns", "unshare"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
]
json.dump(profile, sys.stdout)
END
}

# same FOLDER: say whether a run has the checkout's bytes.
same() {
  if sums "$1" | diff -q - "$scratch/wanted" > /dev/null; then echo "the same bytes"; else echo "OTHER BYTES"; fi
}

# cell HOLDS OPTION...: run the experiment in a container, in which HOLDS is to hold the guest.
cell() {
  local holds=$1 results=$scratch/results start held="-" took bytes="FAILED"
  shift
  mkdir -m 777 "$results"
  chmod 777 "$results"
  start=$(date +%s)
  if "${run[@]}" "$@" -v "$results:/work" "localhost/twoway:$version" run kalampoukas-5.2 > "$scratch/log" 2>&1; then
    held=$(sed -n 's/.*"sandbox": "\(.*\)".*/\1/p' "$results/results/latest/manifest.json")
    bytes=$(same "$results/results/latest")
  fi
  took=$(($(date +%s) - start))
  echo "| \`${*//$scratch\//}\` | $held | $took | $bytes |"
  if [ "$held $bytes" != "$holds the same bytes" ]; then status=1; tail -3 "$scratch/log" >&2; fi
  rm -rf "$results"
}

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$checkout/twoway/__init__.py")
"$checkout/.venv/bin/twoway" run kalampoukas-5.2 --results "$scratch/here" > /dev/null 2>&1
sums "$scratch/here/latest" > "$scratch/wanted"
profile > "$scratch/as-docker.json"
start=$(date +%s)
"${podman[@]}" load --quiet --input "$checkout/dist/twoway-$version-oci.tar" > /dev/null
echo "image: $(du -m "$checkout/dist/twoway-$version-oci.tar" | cut -f1) MiB, unpacked" \
  "$("${podman[@]}" images --format '{{.Size}}'), loaded in $(($(date +%s) - start)) s"
echo "| podman run | the guest was held by | s | captures |"
echo "|---|---|---|---|"
cell container
cell container --user 1000:1000
cell container --security-opt "seccomp=$scratch/as-docker.json"
cell container --security-opt "seccomp=$scratch/as-docker.json" --user 1000:1000 --cap-drop all --read-only
cell bubblewrap --security-opt unmask=ALL --user 1000:1000

# Two runs at the same time in one container.
mkdir -m 777 "$scratch/two"
"${run[@]}" -v "$scratch/two:/work" --entrypoint sh "localhost/twoway:$version" -c '
  twoway run kalampoukas-5.2 --results a & twoway run kalampoukas-5.2 --results b; wait' > "$scratch/log" 2>&1 || true
for name in a b; do
  found=$(same "$scratch/two/$name/latest")
  echo "two runs at once: $name: $found"
  [ "$found" = "the same bytes" ] || status=1
done
# Root that cannot become nobody is refused.
"${run[@]}" --cap-drop all "localhost/twoway:$version" run > "$scratch/log" 2>&1 || true
grep -h "the container's root lacks" "$scratch/log" || status=1
exit $status
