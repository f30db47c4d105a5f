#!/bin/sh
# A lab host made of namespaces: run by lab_hosts.py inside `unshare`, as its first process.
#
#   lab_host.sh FOLDER DISK_SIZE
#
# Its root is this machine's under an overlay whose changes are kept in memory: FOLDER/disk/changes
# is all that ever changed on it. Its /etc is the copy in FOLDER/disk/machine: that of a machine in
# use changes. /tmp, /run, /home and /root are its own. Waits for FOLDER/wired (its network), runs
# FOLDER/prepare.sh, and serves SSH.
set -eu
folder=$1
disk=$folder/disk
root=$folder/root
mount --make-rprivate /
mount -t tmpfs -o "size=$2" disk "$disk"
mkdir "$disk/changes" "$disk/work" "$disk/machine"
cp -a /etc "$disk/machine"
mount -t overlay -o "lowerdir=$disk/machine:/,upperdir=$disk/changes,workdir=$disk/work" overlay "$root"
for own in tmp run home root; do mount -t tmpfs "$own" "$root/$own"; done
chmod 1777 "$root/tmp"
chmod 700 "$root/root"
mkdir "$root/run/sshd" "$root/run/lock" "$root/run/lab" "$root/run/old"
mount --rbind /dev "$root/dev"
mount -t tmpfs shm "$root/dev/shm"
mount --bind "$folder" "$root/run/lab"
mount --bind "$disk" "$root/run/lab/disk"
cd "$root"
pivot_root . run/old
mount -t proc proc /proc
mount -t sysfs sysfs /sys
umount -l /run/old
hostname "${folder##*/}"
until [ -e /run/lab/wired ]; do sleep 0.05; done
ip link set lo up
# shellcheck source=/dev/null
. /run/lab/prepare.sh
exec /usr/sbin/sshd -D -e -f /run/lab/sshd_config
