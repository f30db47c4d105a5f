// SPDX-License-Identifier: GPL-2.0-only
/*
 * host_calls - what guest root may ask the host for, past user-mode Linux.
 *
 * The guest's kernel is a process of the host, and a module part of it: an instruction "syscall"
 * in it is the host's. The module makes a file in the run's folder, which is allowed, tries calls
 * that are not, and prints each result: "host_calls: NAME RESULT".
 */
#include <linux/fcntl.h>
#include <linux/module.h>
#include <linux/socket.h>
#include <linux/stat.h>

#include "host.h"

#define AT_CWD (-100)

static char room[256];	/* for calls that want a structure */

static const struct {
	const char *name;
	long number, a, b, c, d;
} tries[] = {
	/* The first is allowed, and shows that the others reach the host. */
	{ "own file", 257, AT_CWD, (long)"/mnt/run/by-module", O_CREAT | O_WRONLY, 0644 },
	{ "write kernel", 257, AT_CWD, (long)"/mnt/linux", O_WRONLY },
	{ "write setting", 257, AT_CWD, (long)"/proc/sys/kernel/core_pattern", O_WRONLY },
	{ "write sysrq", 257, AT_CWD, (long)"/proc/sysrq-trigger", O_WRONLY },
	{ "read shadow", 257, AT_CWD, (long)"/etc/shadow", O_RDONLY },
	{ "read memory", 257, AT_CWD, (long)"/dev/mem", O_RDONLY },
	{ "host's daemons", 257, AT_CWD, (long)"/run/dbus", O_RDONLY },
	{ "environment", 257, AT_CWD, (long)"/proc/2/root/../../root/.bashrc", O_RDONLY },
	{ "device", 259, AT_CWD, (long)"/mnt/run/null", S_IFCHR | 0666, 0x103 },
	{ "remount", 165, (long)"none", (long)"/", (long)"tmpfs", 32 },
	{ "unmount", 166, (long)"/proc" },
	{ "namespaces", 272, 0x10000000 },
	{ "clone namespaces", 56, 0x10000000 | 17 },
	{ "become root", 105, 0 },
	{ "vsock", 41, AF_VSOCK, 1 },
	{ "internet", 41, AF_INET, 1 },
	{ "packets", 41, AF_PACKET, 3 },
	{ "netlink", 41, AF_NETLINK, 3 },
	{ "io_uring", 425, 8, (long)room },
	{ "userfaultfd", 323 },
	{ "bpf", 321 },
	{ "perf events", 298, (long)room, 0, -1, -1 },
	{ "keyring", 250, 0, -3, 1 },
	{ "open by handle", 304, AT_CWD, (long)room },
	{ "module", 175, (long)room, 8, (long)"" },
	{ "kexec", 246 },
	{ "type into terminal", 16, 0, 0x5412, (long)"x" },
};

static int __init try_all(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tries); i++)
		pr_info("host_calls: %s %ld\n", tries[i].name,
			host(tries[i].number, tries[i].a, tries[i].b, tries[i].c, tries[i].d));
	return -ECANCELED;	/* done: the module need not stay */
}
module_init(try_all);

MODULE_DESCRIPTION("What the host answers a module of a guest's kernel");
MODULE_LICENSE("GPL");
