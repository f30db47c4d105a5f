#!/bin/sh
# inside.sh FOLDER COMMAND...: make the folder the root and run the command there; called inside `unshare`.
set -eu
root=$1
shift
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
cd /
hostname bare
# What trusts its own certificates only, as uv does, is told of the system's: this machine may have its own.
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
  SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt "$@"
