// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive one connection's data, as `stream receive` does, and drop it unread.
 *
 *	receive PORT PATIENCE BUFFER [ipv6]
 *
 * A sink that has no end PATIENCE ns after it was asked for its summary ends then: a full queue
 * may have dropped the reset.
 */

#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "testbed_end.h"

/* To be woken once per MiB. */
#define WAKE_BYTES	SZ_1M
#define READ_BYTES	SZ_1G

static long sink_read(struct socket *socket)
{
	struct msghdr message = { 0 };
	long n = kernel_recvmsg(socket, &message, NULL, 0, READ_BYTES, MSG_TRUNC | MSG_WAITALL);

	end_spend_call(n);
	return n;
}

static int sink_receive(struct end *end, struct socket *socket)
{
	int err = end_set_int(socket, SOL_SOCKET, SO_RCVLOWAT, WAKE_BYTES);
	struct tcp_info info;
	long n;

	end_spend_call(err);
	if (err)
		return err;
	do {
		n = sink_read(socket);
	} while (n > 0 && !end_is_stopping(end));
	if (n < 0 && n != -ECONNRESET && !end_is_stopping(end))
		return n;
	tcp_get_info(socket->sk, &info);
	end_spend_call(0);
	scnprintf(end->summary, sizeof(end->summary),
		  "{\"role\": \"receive\", \"port\": %u, \"bytes_received\": %llu}\n",
		  ntohs(inet_sk(socket->sk)->inet_sport), info.tcpi_bytes_received);
	end_spend_call(0);		/* stdio asks what standard output is, */
	end_spend_call(0);		/* and writes it as the program ends */
	return 0;
}

static int sink_run(struct end *end)
{
	struct socket *accepted;
	int err = kernel_accept(end->socket, &accepted, 0);

	end_spend_call(err);
	if (err)
		return end_is_stopping(end) ? -ENOTCONN : err;
	err = sink_receive(end, accepted);
	sock_release(accepted);
	return err;
}

static void sink_release(struct instrument *instrument)
{
	struct end *end = end_of(instrument);

	end_release(end);
	kfree(end);
}

static const struct instrument_ops sink_ops = {
	.finish		= end_finish,
	.release	= sink_release,
};

int sink_command(struct instrument **instrument, int argc, char **argv)
{
	struct end *end;
	bool ipv6 = argc == 5 && !strcmp(argv[4], "ipv6");
	int err, buffer;

	if ((argc != 4 && !ipv6) || *instrument)
		return -EINVAL;
	end = kzalloc(sizeof(*end), GFP_KERNEL);
	if (!end)
		return -ENOMEM;
	end->instrument.ops = &sink_ops;
	err = end_prepare(end, sink_run, ipv6 ? AF_INET6 : AF_INET, argv[1], argv[2]);
	if (!err && (kstrtoint(argv[3], 10, &buffer) || buffer <= 0))
		err = -EINVAL;
	if (!err)
		err = end_set_int(end->socket, SOL_SOCKET, SO_RCVBUF, buffer);
	if (!err)
		err = kernel_listen(end->socket, 1);
	if (!err)
		err = end_start(end, argv[0]);
	if (err) {
		sink_release(&end->instrument);
		return err;
	}
	*instrument = &end->instrument;
	return 0;
}
