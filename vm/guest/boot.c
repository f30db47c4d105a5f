// SPDX-License-Identifier: GPL-2.0-only
/*
 * boot - first process of a stock kernel, from an initramfs: make the host's root file system
 * the guest's, then become init.
 *
 * A distribution's kernel has as modules what user-mode Linux has built in. The initramfs has those
 * that the root file system needs, in /modules, named in the order of their dependencies. With them
 * the sandbox's root is mounted over 9p, read-only, and its init goes on as it does in user-mode
 * Linux.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/module.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOST	"/host"
#define MODULES	"/modules"
#define INIT	"/mnt/bin/init"
/* The host's files do not change while the guest runs, so it may believe its own cache. */
#define SHARE	"trans=virtio,version=9p2000.L,msize=512000,cache=loose"

static void die(const char *what)
{
	fprintf(stderr, "boot: %s: %s\n", what, strerror(errno));
	reboot(RB_POWER_OFF);
	_exit(1);
}

static int is_module(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void load_modules(void)
{
	struct dirent **entries;
	int n = scandir(MODULES, &entries, is_module, alphasort);

	if (n < 0 || chdir(MODULES) < 0)
		die(MODULES);
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		int flags = strcmp(strrchr(name, '.'), ".ko") ? MODULE_INIT_COMPRESSED_FILE : 0;
		int fd = open(name, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || syscall(SYS_finit_module, fd, "", flags) < 0)
			die(name);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	load_modules();
	if (mkdir(HOST, 0755) < 0 ||
	    mount("root", HOST, "9p", MS_RDONLY, SHARE) < 0)
		die("the host's root over 9p");
	if (chdir(HOST) < 0 || chroot(".") < 0)
		die("chroot " HOST);
	argv[0] = INIT;
	execv(INIT, argv);
	die(INIT);
}
