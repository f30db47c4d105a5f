/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two ends of a connection share: a kernel thread that does what vm/guest/stream.c does,
 * on a socket like a program's.
 *
 * The calls are the socket layer's, those that a system call would make, in the same order; they
 * block, and a signal ends them. Each takes the time that the system call took (testbed_clock.h).
 */
#ifndef TWOWAY_TESTBED_END_H
#define TWOWAY_TESTBED_END_H

#include <linux/completion.h>
#include <linux/net.h>

#include "testbed.h"

struct end {
	struct instrument instrument;
	int (*run)(struct end *end);	/* the thread's work; 0 or an error */
	struct socket *socket;		/* bound, in the writer's network namespace */
	struct task_struct *thread;	/* held */
	struct completion over;
	s64 patience_ns;		/* how long finish() waits before it interrupts */
	bool stopping;			/* interrupted: return from run() */
	int error;			/* of run(), once over */
	char summary[TESTBED_SUMMARY];
};

#define end_of(pointer) container_of(pointer, struct end, instrument)

/* Initialise: a socket of a family, bound to a port. The caller releases, whatever this returns. */
int end_prepare(struct end *end, int (*run)(struct end *end), int family, const char *port,
		const char *patience_ns);
/* Start the thread. */
int end_start(struct end *end, const char *name);
/* Have a blocked call return; from any context. */
void end_interrupt(struct end *end);
/* Finish as struct instrument_ops has it. */
int end_finish(struct instrument *instrument, char *summary, size_t size);
/* End the thread and close the socket. */
void end_release(struct end *end);

/* Let a call's time pass, and that of the handler of a signal that came meanwhile. */
void end_spend_call(long result);
/* True from the moment when the thread is to end. */
bool end_is_stopping(const struct end *end);
/* Set a socket's option as setsockopt() does. */
int end_set_option(struct socket *socket, int level, int name, void *value, unsigned int size);
int end_set_int(struct socket *socket, int level, int name, int value);

#endif /* TWOWAY_TESTBED_END_H */
