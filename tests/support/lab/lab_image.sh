#!/bin/sh
# lab_image.sh FOLDER: make the disk of a lab host, and what boots it, in FOLDER. As root.
#
# A Debian as this machine's apt has it: its kernel, systemd, an SSH server, a user `lab` whom sudo
# asks nothing. Apt's lists are empty, as on a fresh cloud image, and its name does not resolve, of
# which sudo complains each time. Leaves disk (8 GB, most of them holes), vmlinuz, initrd, key (the
# user's) and host_key.pub.
set -eu
cd "$1"

# Called by mmdebstrap when the packages are installed, with the new root folder.
furnish() {
  here=$PWD
  cd "$1"
  chroot . useradd --create-home --shell /bin/bash lab
  echo 'lab ALL=(ALL) NOPASSWD: ALL' > etc/sudoers.d/lab
  mkdir -m 700 home/lab/.ssh
  cp "$here/key.pub" home/lab/.ssh/authorized_keys
  chroot . chown -R lab:lab /home/lab/.ssh
  printf '[Match]\nName=en*\n[Network]\nDHCP=ipv4\n' > etc/systemd/network/lab.network
  chroot . systemctl --quiet enable systemd-networkd
  echo 'nameserver 10.0.2.3' > etc/resolv.conf
  echo lab > etc/hostname
  echo '127.0.0.1 localhost' > etc/hosts
  echo '/dev/vda / ext4 defaults 0 1' > etc/fstab
  # A proxy of this machine's, as the host sees it.
  sed -Ei 's/(127\.0\.0\.1|localhost)/10.0.2.2/' etc/apt/apt.conf.d/99mmdebstrap
  rm -f var/lib/apt/lists/*_*
  cp etc/ssh/ssh_host_ed25519_key.pub "$here/host_key.pub"
  cp boot/vmlinuz-* "$here/vmlinuz"
  cp boot/initrd.img-* "$here/initrd"
  # /proc and the like are mounted here now; they do not belong to the disk.
  mkdir "$here/root"
  mount --bind . "$here/root"
  truncate -s 8G "$here/disk"
  mke2fs -q -t ext4 -d "$here/root" "$here/disk"
  umount "$here/root"
  rmdir "$here/root"
}

if [ $# -eq 2 ]; then
  furnish "$2"
  exit
fi
# shellcheck source=/dev/null
. /etc/os-release
# shellcheck disable=SC2016 # apt's variables, not the shell's
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
  'Created-By: Packages' 'Origin: Debian' | sort -u > sources.list
apt-config dump --no-empty --format '%f "%v";%n' \
  Acquire::Check-Valid-Until Acquire::Check-Date Acquire::http Acquire::https > apt.conf
ssh-keygen -q -t ed25519 -N '' -C lab -f key
initramfs=etc/initramfs-tools/conf.d
modules=usr/share/initramfs-tools/modules.d
mmdebstrap --quiet --variant=apt --aptopt=apt.conf \
  --include=linux-image-amd64,systemd-sysv,libpam-systemd,openssh-server,python3,sudo,iproute2 \
  --essential-hook="mkdir -p \"\$1/$initramfs\" \"\$1/$modules\"" \
  --essential-hook="echo MODULES=list > \"\$1/$initramfs/lab\"" \
  --essential-hook="printf 'virtio_pci\nvirtio_blk\next4\n' > \"\$1/$modules/lab\"" \
  --customize-hook="'$0' '$PWD' \"\$1\"" \
  "$VERSION_CODENAME" /dev/null sources.list
