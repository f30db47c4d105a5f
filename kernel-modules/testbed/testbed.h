/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The instruments of the module twoway_testbed, which record inside the kernel.
 *
 * Each does what a program does elsewhere (tcpdump, vm/guest/observe.c) and leaves the same bytes.
 * In user-mode Linux a system call is five ptrace calls of the host; a kernel thread needs none.
 */
#ifndef TWOWAY_TESTBED_H
#define TWOWAY_TESTBED_H

#include <linux/fs.h>
#include <linux/types.h>

#include "compat/common.h"

/* Room for an instrument's summary. */
#define TESTBED_SUMMARY 512

struct instrument;

struct instrument_ops {
	/*
	 * Have it end, and tell what it did. The summary's length, or an error; called again
	 * after -ERESTARTSYS alone.
	 */
	int (*finish)(struct instrument *instrument, char *summary, size_t size);
	/* Free it, finished or not. */
	void (*release)(struct instrument *instrument);
};

struct instrument {
	const struct instrument_ops *ops;
};

/*
 * A line of commands for an instrument: its words but the first, which says what is wanted. Called
 * in the caller's network namespace, once a line; *instrument is NULL before its first line.
 */
int tap_command(struct instrument **instrument, int argc, char **argv);
int sampler_command(struct instrument **instrument, int argc, char **argv);

/* A regular file of the caller's that is written anew: no write to it waits for a reader. */
struct file *testbed_create(const char *path);

#endif /* TWOWAY_TESTBED_H */
