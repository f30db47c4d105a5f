# shellcheck shell=bash
# What distros.sh and image.sh compare.

# sums FOLDER: the SHA-256 of a run's captures.
sums() {
  for capture in "$1"/pcap/*.pcap.zst; do
    echo "$(zstdcat "$capture" | sha256sum | cut -d' ' -f1) $(basename "$capture")"
  done
}
