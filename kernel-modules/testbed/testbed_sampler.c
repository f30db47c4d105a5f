// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP_INFO of connections and the lengths of queues, as vm/guest/observe.c writes them.
 *
 *	sockets NAME		the writer's namespace, called NAME in the rows
 *	queue INTERFACE		the root qdisc of an interface of the writer's namespace
 *	sample START STOP INTERVAL PROGRESS FOLDER
 *
 * Times are ns of CLOCK_REALTIME. FOLDER/tcp-info.csv gets a row for each established connection
 * and sample, FOLDER/queues.csv one for each queue and sample, and FOLDER/progress.json the line
 * by which the host knows that virtual time moves.
 *
 * How this is the same as the program: the rows are those of a dump of sock_diag and of rtnetlink,
 * in their order, and a step that stands for a system call takes what the call took
 * (testbed_clock.h). So whatever is due in the meantime waits as long as it did for the program.
 */

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/pagemap.h>
#include <linux/rtnetlink.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/gen_stats.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>
#include <net/pkt_sched.h>
#include <net/tcp.h>

#include "testbed.h"
#include "testbed_clock.h"

#define NAME_BYTES	64
#define ROW_BYTES	256
/* As much as the program's stdio keeps. */
#define TABLE_BYTES	SZ_1M
#define FIRST_SOCKETS	64
/* Empty ones take a few ns each. */
#define BUCKETS_AT_ONCE	1024

static const char * const tcp_header[] = {
	"# clock: CLOCK_REALTIME, ns\n",
	"# cwnd, ssthresh, unacked: segments (ssthresh -1: infinite); rtt, rttvar, rto: us\n",
	"time_ns,node,source,source_port,destination,port,cwnd,ssthresh,rtt_us,rttvar_us,",
	"unacked,retransmits,ca_state,bytes_acked,rto_us\n",
	NULL,
};

static const char * const queue_header[] = {
	"# clock: CLOCK_REALTIME, ns\n",
	"# the kernel's own count, the packet in service included, read by read_ns\n",
	"time_ns,interface,packets,bytes,drops,read_ns\n",
	NULL,
};

/* A namespace whose connections are sampled. */
struct place {
	struct list_head list;
	struct net *net;
	char name[NAME_BYTES];
};

/* The interface's number, not a reference to it: it may be deleted meanwhile. */
struct queue {
	struct list_head list;
	struct net *net;
	int ifindex;
	char name[IFNAMSIZ];
};

struct table {
	struct file *file;
	char *data;			/* TABLE_BYTES */
	size_t used;
};

struct sampler {
	struct instrument instrument;
	struct list_head places, queues;
	s64 start_ns, stop_ns, interval_ns, progress_ns;
	struct table tcp, queue;
	struct file *progress;
	struct task_struct *thread;
	struct completion sampled;	/* the last sample is in its file */
	struct sock **found;		/* held, of one sample */
	unsigned int n_found, room;
	struct inet_hashinfo *hash;	/* the table in which they were found */
	u64 acked_bytes;		/* of all connections, at the last sample */
	u32 queued_packets;		/* in all queues, at the last sample */
	int error;			/* of the first write that failed */
};

static struct sampler *sampler_of(struct instrument *instrument)
{
	return container_of(instrument, struct sampler, instrument);
}

static void write_file(struct sampler *s, struct file *file, const char *data, size_t size,
		       loff_t *at)
{
	ssize_t n = kernel_write(file, data, size, at);

	if (n != size && !s->error)
		s->error = n < 0 ? n : -EIO;
}

static void table_flush(struct sampler *s, struct table *table)
{
	write_file(s, table->file, table->data, table->used, &table->file->f_pos);
	table->used = 0;
}

static void table_add(struct sampler *s, struct table *table, const char *text, size_t size)
{
	while (size) {
		size_t part = min(size, TABLE_BYTES - table->used);

		memcpy(table->data + table->used, text, part);
		table->used += part;
		text += part;
		size -= part;
		if (table->used == TABLE_BYTES) {
			table_flush(s, table);
			testbed_spend_call();
		}
	}
}

/* Hold the bucket's established connections; false if there is no room for all. */
static bool find_in_bucket(struct sampler *s, struct inet_hashinfo *hash, unsigned int bucket)
{
	struct inet_ehash_bucket *head = &hash->ehash[bucket];
	spinlock_t *lock = inet_ehash_lockp(hash, bucket);
	struct hlist_nulls_node *node;
	struct sock *sk;
	bool fits = true;

	if (hlist_nulls_empty(&head->chain))
		return true;
	spin_lock_bh(lock);
	sk_nulls_for_each(sk, node, &head->chain) {
		if (sk->sk_state != TCP_ESTABLISHED)
			continue;
		if (s->n_found == s->room) {
			fits = false;
			break;
		}
		sock_hold(sk);
		s->found[s->n_found++] = sk;
	}
	spin_unlock_bh(lock);
	return fits;
}

static void drop_found(struct sampler *s)
{
	while (s->n_found)
		sock_put(s->found[--s->n_found]);
	s->hash = NULL;
}

/* Hold all established connections of a table, in the order of a dump. */
static void find_sockets(struct sampler *s, struct inet_hashinfo *hash)
{
	struct sock **more;
	unsigned int i;

	drop_found(s);
	s->hash = hash;
	for (i = 0; i <= hash->ehash_mask; i++) {
		if (i % BUCKETS_AT_ONCE == 0)
			cond_resched();
		if (find_in_bucket(s, hash, i))
			continue;
		while (s->n_found)
			sock_put(s->found[--s->n_found]);
		more = kvmalloc_array(s->room, 2 * sizeof(*more), GFP_KERNEL);
		if (!more) {
			s->error = -ENOMEM;
			return;
		}
		kvfree(s->found);
		s->found = more;
		s->room *= 2;
		i = -1;			/* from the first bucket again */
	}
}

/* The columns from node to port. */
static void write_ends(char *row, size_t size, const struct place *place, struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		scnprintf(row, size, "%s,%pI6c,%u,%pI6c,%u", place->name, &sk->sk_v6_rcv_saddr,
			  ntohs(inet->inet_sport), &sk->sk_v6_daddr, ntohs(inet->inet_dport));
		return;
	}
#endif
	scnprintf(row, size, "%s,%pI4,%u,%pI4,%u", place->name, &inet->inet_rcv_saddr,
		  ntohs(inet->inet_sport), &inet->inet_daddr, ntohs(inet->inet_dport));
}

static void write_socket(struct sampler *s, const struct place *place, s64 at, struct sock *sk)
{
	char ends[ROW_BYTES], row[2 * ROW_BYTES];
	struct tcp_info info;
	int n;

	tcp_get_info(sk, &info);
	s->acked_bytes += info.tcpi_bytes_acked;
	write_ends(ends, sizeof(ends), place, sk);
	n = scnprintf(row, sizeof(row), "%lld,%s,%u,%d,%u,%u,%u,%u,%u,%llu,%u\n",
		      at, ends, info.tcpi_snd_cwnd,
		      info.tcpi_snd_ssthresh > S32_MAX / 2 ? -1 : (int)info.tcpi_snd_ssthresh,
		      info.tcpi_rtt, info.tcpi_rttvar, info.tcpi_unacked,
		      info.tcpi_total_retrans, info.tcpi_ca_state, info.tcpi_bytes_acked,
		      info.tcpi_rto);
	table_add(s, &s->tcp, row, n);
}

/* Takes the time of a request and an answer for each namespace. */
static void sample_sockets(struct sampler *s, s64 at)
{
	struct place *place;
	unsigned int i;

	list_for_each_entry(place, &s->places, list) {
		/* The first namespace's table, but for net.ipv4.tcp_child_ehash_entries. */
		struct inet_hashinfo *hash = place->net->ipv4.tcp_death_row.hashinfo;

		if (hash != s->hash)
			find_sockets(s, hash);
		for (i = 0; i < s->n_found; i++)
			if (net_eq(sock_net(s->found[i]), place->net))
				write_socket(s, place, at, s->found[i]);
		testbed_spend_call();
		testbed_spend_call();
	}
	drop_found(s);
}

static void add_queue_of(struct gnet_stats_queue *stats, struct Qdisc *qdisc)
{
	u32 packets = stats->qlen + qdisc_qlen_sum(qdisc);

	gnet_stats_add_queue(stats, qdisc->cpu_qstats, &qdisc->qstats);
	stats->qlen = packets;
}

/* mq and mqprio have no queue of their own, but one for each of the interface's. */
static void read_queue(struct gnet_stats_queue *stats, struct net_device *dev, struct Qdisc *root)
{
	unsigned int i;

	if (!(root->flags & TCQ_F_MQROOT)) {
		add_queue_of(stats, root);
		return;
	}
	for (i = 0; i < dev->num_tx_queues; i++)
		add_queue_of(stats, rtnl_dereference(netdev_get_tx_queue(dev, i)->qdisc_sleeping));
}

/* Takes the time of a request, an answer and a look at the clock for each queue. */
static void sample_queues(struct sampler *s, s64 at)
{
	struct queue *queue;
	char row[ROW_BYTES];
	int n;

	list_for_each_entry(queue, &s->queues, list) {
		struct gnet_stats_queue stats = { 0 };
		struct net_device *dev;
		struct Qdisc *qdisc;

		rtnl_lock();
		dev = __dev_get_by_index(queue->net, queue->ifindex);
		qdisc = dev ? rtnl_dereference(dev->qdisc) : NULL;
		if (qdisc)
			read_queue(&stats, dev, qdisc);
		rtnl_unlock();
		s->queued_packets += stats.qlen;
		testbed_spend_call();
		testbed_spend_call();
		n = scnprintf(row, sizeof(row), "%lld,%s,%u,%u,%u,%lld\n", at, queue->name,
			      stats.qlen, stats.backlog, stats.drops, ktime_get_real_ns());
		table_add(s, &s->queue, row, n);
		testbed_spend_call();
	}
}

/* One line of constant length, in place: a reader never sees half of two. */
static void write_progress(struct sampler *s, s64 at)
{
	char line[ROW_BYTES];
	loff_t begin = 0;
	int n = scnprintf(line, sizeof(line),
			  "{\"time_ns\": %20lld, \"acked_bytes\": %20llu, \"queued_packets\": %10u}\n",
			  at, s->acked_bytes, s->queued_packets);

	write_file(s, s->progress, line, n, &begin);
	testbed_spend_call();
	testbed_spend_call();
}

static int sampler_thread(void *data)
{
	struct sampler *s = data;
	s64 sample = s->start_ns, report = s->start_ns, at = s->start_ns;

	while (at < s->stop_ns && testbed_sleep_until(at)) {
		testbed_spend_call();
		if (at == sample) {
			s->acked_bytes = 0;
			s->queued_packets = 0;
			sample_sockets(s, at);
			sample_queues(s, at);
			sample += s->interval_ns;
		}
		if (at == report) {
			write_progress(s, at);
			report += s->progress_ns;
		}
		at = min(sample, report);
	}
	table_flush(s, &s->tcp);
	table_flush(s, &s->queue);
	complete(&s->sampled);
	testbed_thread_end();
	return 0;
}

/* Samples end by themselves at their last. */
static int sampler_finish(struct instrument *instrument, char *summary, size_t size)
{
	struct sampler *s = sampler_of(instrument);

	if (!s->thread)
		return -EINVAL;
	if (wait_for_completion_interruptible(&s->sampled))
		return -ERESTARTSYS;
	return s->error ?: filemap_write_and_wait(s->tcp.file->f_mapping) ?:
	       filemap_write_and_wait(s->queue.file->f_mapping);
}

static void close_file(struct file *file)
{
	if (!IS_ERR_OR_NULL(file))
		fput(file);
}

static void sampler_release(struct instrument *instrument)
{
	struct sampler *s = sampler_of(instrument);
	struct place *place, *next_place;
	struct queue *queue, *next_queue;

	if (s->thread)
		kthread_stop(s->thread);
	list_for_each_entry_safe(place, next_place, &s->places, list) {
		put_net(place->net);
		kfree(place);
	}
	list_for_each_entry_safe(queue, next_queue, &s->queues, list) {
		put_net(queue->net);
		kfree(queue);
	}
	close_file(s->tcp.file);
	close_file(s->queue.file);
	close_file(s->progress);
	kvfree(s->tcp.data);
	kvfree(s->queue.data);
	kvfree(s->found);
	kfree(s);
}

static const struct instrument_ops sampler_ops = {
	.finish		= sampler_finish,
	.release	= sampler_release,
};

static int add_place(struct sampler *s, const char *name)
{
	struct place *place = kzalloc(sizeof(*place), GFP_KERNEL);

	if (!place)
		return -ENOMEM;
	if (strscpy(place->name, name, sizeof(place->name)) < 0) {
		kfree(place);
		return -ENAMETOOLONG;
	}
	place->net = get_net(current->nsproxy->net_ns);
	list_add_tail(&place->list, &s->places);
	return 0;
}

static int add_queue(struct sampler *s, const char *interface)
{
	struct queue *queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	struct net_device *dev;

	if (!queue)
		return -ENOMEM;
	dev = dev_get_by_name(current->nsproxy->net_ns, interface);
	if (!dev) {
		kfree(queue);
		return -ENODEV;
	}
	queue->ifindex = dev->ifindex;
	strscpy(queue->name, dev->name, sizeof(queue->name));
	dev_put(dev);
	queue->net = get_net(current->nsproxy->net_ns);
	list_add_tail(&queue->list, &s->queues);
	return 0;
}

static struct file *create_in(const char *folder, const char *name)
{
	char *path = kasprintf(GFP_KERNEL, "%s/%s", folder, name);
	struct file *file = path ? testbed_create(path) : ERR_PTR(-ENOMEM);

	kfree(path);
	return file;
}

static int open_table(struct sampler *s, struct table *table, const char *folder,
		      const char *name, const char * const *header)
{
	table->data = kvmalloc(TABLE_BYTES, GFP_KERNEL);
	if (!table->data)
		return -ENOMEM;
	table->file = create_in(folder, name);
	if (IS_ERR(table->file))
		return PTR_ERR(table->file);
	for (; *header; header++)
		table_add(s, table, *header, strlen(*header));
	return 0;
}

static int start_sampling(struct sampler *s, char **argv)
{
	int err;

	if (s->thread || s->tcp.data)
		return -EBUSY;
	if (kstrtos64(argv[1], 10, &s->start_ns) || kstrtos64(argv[2], 10, &s->stop_ns) ||
	    kstrtos64(argv[3], 10, &s->interval_ns) || kstrtos64(argv[4], 10, &s->progress_ns) ||
	    s->stop_ns <= s->start_ns || s->interval_ns <= 0 || s->progress_ns <= 0)
		return -EINVAL;
	s->room = FIRST_SOCKETS;
	s->found = kvmalloc_array(s->room, sizeof(*s->found), GFP_KERNEL);
	if (!s->found)
		return -ENOMEM;
	err = open_table(s, &s->tcp, argv[5], "tcp-info.csv", tcp_header);
	if (!err)
		err = open_table(s, &s->queue, argv[5], "queues.csv", queue_header);
	if (err)
		return err;
	s->progress = create_in(argv[5], "progress.json");
	if (IS_ERR(s->progress))
		return PTR_ERR(s->progress);
	s->thread = kthread_run(sampler_thread, s, "testbed-sampler");
	if (IS_ERR(s->thread)) {
		err = PTR_ERR(s->thread);
		s->thread = NULL;
	}
	return err;
}

static struct sampler *sampler_new(void)
{
	struct sampler *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->instrument.ops = &sampler_ops;
	init_completion(&s->sampled);
	INIT_LIST_HEAD(&s->places);
	INIT_LIST_HEAD(&s->queues);
	return s;
}

int sampler_command(struct instrument **instrument, int argc, char **argv)
{
	struct sampler *s;

	if (*instrument && (*instrument)->ops != &sampler_ops)
		return -EBUSY;
	s = *instrument ? sampler_of(*instrument) : sampler_new();
	if (!s)
		return -ENOMEM;
	*instrument = &s->instrument;
	if (argc == 2 && !strcmp(argv[0], "sockets"))
		return add_place(s, argv[1]);
	if (argc == 2 && !strcmp(argv[0], "queue"))
		return add_queue(s, argv[1]);
	if (argc == 6 && !strcmp(argv[0], "sample"))
		return start_sampling(s, argv);
	return -EINVAL;
}
