// SPDX-License-Identifier: GPL-2.0-only
/* Threads, sockets and signals of the ends of connections: see testbed_end.h. */

#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/nsproxy.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sockptr.h>
#include <net/sock.h>

#include "compat/socket.h"
#include "testbed_clock.h"
#include "testbed_end.h"

/* What interrupts a blocked call. Only the kernel can send it. */
#define INTERRUPT SIGALRM

int end_set_option(struct socket *socket, int level, int name, void *value, unsigned int size)
{
	sockptr_t given = KERNEL_SOCKPTR(value);

	if (level == SOL_SOCKET)
		return sock_setsockopt(socket, level, name, given, size);
	return socket->ops->setsockopt(socket, level, name, given, size);
}

int end_set_int(struct socket *socket, int level, int name, int value)
{
	return end_set_option(socket, level, name, &value, sizeof(value));
}

void end_spend_call(long result)
{
	int times = 1;

	/* A handler's call is its return, which has the interrupted call's result. */
	while (times--) {
		if (result < 0)
			testbed_spend_failed_call();
		else
			testbed_spend_call();
		/* Not signal_pending(): what kthread_stop() sets, flush_signals() leaves. */
		if (task_sigpending(current)) {
			flush_signals(current);
			times++;
		}
	}
}

bool end_is_stopping(const struct end *end)
{
	return READ_ONCE(end->stopping);
}

void end_interrupt(struct end *end)
{
	send_sig(INTERRUPT, end->thread, 1);
}

static void end_stop(struct end *end)
{
	WRITE_ONCE(end->stopping, true);
	end_interrupt(end);
}

static int end_thread(void *data)
{
	struct end *end = data;

	/* Before this it is deaf, but then sees that it is to stop. */
	allow_kernel_signal(INTERRUPT);
	end->error = end_is_stopping(end) ? -EINTR : end->run(end);
	complete(&end->over);
	return 0;
}

int end_prepare(struct end *end, int (*run)(struct end *end), int family, const char *port,
		const char *patience_ns)
{
	struct sockaddr_storage local = { .ss_family = family };
	int err;

	end->run = run;
	init_completion(&end->over);
	if (inet_pton_with_scope(NULL, family, family == AF_INET6 ? "::" : "0.0.0.0", port,
				 &local) ||
	    !((struct sockaddr_in *)&local)->sin_port ||	/* where IPv6 has it, too */
	    kstrtos64(patience_ns, 10, &end->patience_ns) || end->patience_ns < 0)
		return -EINVAL;
	/* Not a socket of the kernel's: this one holds its namespace, as a program's does. */
	err = __sock_create(current->nsproxy->net_ns, family, SOCK_STREAM, 0, &end->socket, 0);
	if (!err)
		err = end_set_int(end->socket, SOL_SOCKET, SO_REUSEADDR, 1);
	return err ?: kernel_bind(end->socket, (TWOWAY_SOCKADDR *)&local, sizeof(local));
}

int end_start(struct end *end, const char *name)
{
	struct task_struct *thread = kthread_create(end_thread, end, "testbed-%s", name);

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	end->thread = get_task_struct(thread);
	wake_up_process(thread);
	return 0;
}

int end_finish(struct instrument *instrument, char *summary, size_t size)
{
	struct end *end = end_of(instrument);
	long left = wait_for_completion_killable_timeout(&end->over,
							 nsecs_to_jiffies(end->patience_ns));

	if (left < 0)
		return -EINTR;
	if (!left) {
		end_stop(end);
		wait_for_completion(&end->over);
	}
	if (end->error)
		return end->error == -ERESTARTSYS ? -EINTR : end->error;
	return strscpy(summary, end->summary, size);
}

void end_release(struct end *end)
{
	if (end->thread) {
		end_stop(end);
		kthread_stop(end->thread);
		put_task_struct(end->thread);
	}
	if (end->socket)
		sock_release(end->socket);
}
