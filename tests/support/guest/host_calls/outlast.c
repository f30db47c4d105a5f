// SPDX-License-Identifier: GPL-2.0-only
/*
 * outlast - a process on the host, beside the guest's kernel.
 *
 * User-mode Linux is a process of the sandbox, and a module part of it. This one makes a copy of
 * that process, which becomes outlast.py, and waits until that has detached itself.
 *
 *	mark	argument of the process that stays
 *	linked	what its links lead to
 */
#include <linux/module.h>

#include "host.h"

#define SIGNALS 64
/* The host's calls. */
#define RT_SIGACTION 13
#define RT_SIGPROCMASK 14
#define ACCESS 21
#define NANOSLEEP 35
#define CLONE 56
#define EXECVE 59
#define SETSID 112
#define EXIT_GROUP 231
#define SIG_SETMASK 2

static char *mark = "", *linked = "";
module_param(mark, charp, 0);
module_param(linked, charp, 0);

static int __init outlast(void)
{
	static const char python[] = "/usr/bin/python3", program[] = "/mnt/run/outlast.py";
	static const unsigned long nothing[4];
	static const long ms[2] = { 0, 1000000 };
	const char *argv[] = { "python3", "-I", program, mark, linked, NULL };
	const char *envp[] = { "PATH=/usr/bin:/bin", NULL };
	int i;

	if (host(CLONE, 0, 0, 0, 0) == 0) {
		for (i = 1; i <= SIGNALS; i++)
			host(RT_SIGACTION, i, (long)nothing, 0, 8);
		host(RT_SIGPROCMASK, SIG_SETMASK, (long)nothing, 0, 8);
		host(SETSID, 0, 0, 0, 0);
		host(EXECVE, (long)python, (long)argv, (long)envp, 0);
		host(EXIT_GROUP, 1, 0, 0, 0);
	}
	while (host(ACCESS, (long)"/mnt/run/detached", 0, 0, 0))
		host(NANOSLEEP, (long)ms, 0, 0, 0);
	return 0;
}
module_init(outlast);

static void __exit outlast_exit(void)
{
}
module_exit(outlast_exit);

MODULE_DESCRIPTION("A process of the host's that tries to outlive the sandbox");
MODULE_LICENSE("GPL");
