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
	 * End it, and write what it did. Returns the summary's length, or an error; called again
	 * only after -ERESTARTSYS.
	 */
	int (*finish)(struct instrument *instrument, char *summary, size_t size);
	/* Free it, finished or not. */
	void (*release)(struct instrument *instrument);
};

struct instrument {
	const struct instrument_ops *ops;
};

/*
 * A line of commands for an instrument, without its first word, which names the command. Called
 * in the caller's network namespace, once a line; *instrument is NULL before its first line.
 */
int tap_command(struct instrument **instrument, int argc, char **argv);
int sampler_command(struct instrument **instrument, int argc, char **argv);

/* Create or empty a regular file, as the caller: no write to it waits for a reader. */
struct file *testbed_create(const char *path);

#endif /* TWOWAY_TESTBED_H */
