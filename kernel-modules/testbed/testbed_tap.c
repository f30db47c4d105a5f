// SPDX-License-Identifier: GPL-2.0-only
/*
 * The packets of an interface, as `tcpdump --time-stamp-precision=nano -w` writes them.
 *
 *	tap INTERFACE in|out|inout SNAP FILE
 *
 * The hook is the one of packet sockets, so the packets, their order and their times are tcpdump's.
 * Each is copied once, into a block; blocks that are full go to the file by a work item, which
 * runs before virtual time moves on. A burst takes as many blocks as it needs, up to the parameter
 * most_blocks; a packet for which there is no room counts as dropped.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/nsproxy.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "testbed.h"

/* 900 packets of 128 bytes a write. */
#define BLOCK_BYTES	(128 << 10)
static uint most_blocks = 256;
module_param(most_blocks, uint, 0444);
MODULE_PARM_DESC(most_blocks, "blocks of 128 KiB that a tap may have, for bursts (256: 32 MiB)");

/* The largest IP packet with its Ethernet header. */
#define MOST_SNAP	65550U
#define PCAP_MAGIC_NS	0xa1b23c4d
#define PCAP_ETHERNET	1

struct pcap_file {
	u32 magic;
	u16 major, minor;
	u32 zone, accuracy, snap, link_type;
};

struct pcap_packet {
	u32 seconds, nanoseconds, captured_bytes, bytes;
};

struct block {
	struct list_head list;
	size_t used;
	u8 data[BLOCK_BYTES - sizeof(struct list_head) - sizeof(size_t)];
};

struct tap {
	struct instrument instrument;
	struct packet_type hook;	/* holds the interface while there is one */
	struct notifier_block events;	/* the interface may go before the tap does */
	bool in, out;
	u32 snap;
	struct file *file;
	struct work_struct write;
	spinlock_t lock;		/* all below */
	struct block *filling;		/* NULL: there was no room for one */
	struct list_head empty, full;
	unsigned int blocks;		/* how many there are */
	u64 captured, dropped;
	int error;			/* of the first write that failed */
};

static struct tap *tap_of(struct instrument *instrument)
{
	return container_of(instrument, struct tap, instrument);
}

/* An empty block, one that was written or a new one; NULL if there may be none. */
static struct block *tap_empty_block(struct tap *tap)
{
	struct block *block;

	block = list_first_entry_or_null(&tap->empty, struct block, list);
	if (block) {
		list_del(&block->list);
	} else if (tap->blocks < most_blocks) {
		block = kmalloc(sizeof(*block), GFP_ATOMIC | __GFP_NOWARN);
		tap->blocks += !!block;
	}
	if (block)
		block->used = 0;
	return block;
}

/* Room for a packet in the block being filled, or in the next; NULL if there is none. */
static void *tap_room(struct tap *tap, size_t bytes)
{
	void *room;

	if (tap->filling && tap->filling->used + bytes > sizeof(tap->filling->data)) {
		list_add_tail(&tap->filling->list, &tap->full);
		tap->filling = NULL;
		schedule_work(&tap->write);
	}
	if (!tap->filling)
		tap->filling = tap_empty_block(tap);
	if (!tap->filling)
		return NULL;
	room = tap->filling->data + tap->filling->used;
	tap->filling->used += bytes;
	return room;
}

/*
 * A packet from its Ethernet header on, with the VLAN tag that the kernel keeps beside it where
 * libpcap puts it back. An error if the packet has fewer bytes.
 */
static int copy_packet(const struct sk_buff *skb, int header, u8 *to, unsigned int bytes)
{
	const __be16 tag[] = { skb->vlan_proto, htons(skb_vlan_tag_get(skb)) };
	unsigned int addresses = min(bytes, 2U * ETH_ALEN), tagged = 0;
	int err;

	if (skb_vlan_tag_present(skb))
		tagged = min_t(unsigned int, bytes - addresses, sizeof(tag));
	err = skb_copy_bits(skb, -header, to, addresses);
	memcpy(to + addresses, tag, tagged);
	return err ?: skb_copy_bits(skb, addresses - header, to + addresses + tagged,
				    bytes - addresses - tagged);
}

static int tap_packet(struct sk_buff *skb, struct net_device *dev, struct packet_type *hook,
		      struct net_device *original)
{
	struct tap *tap = container_of(hook, struct tap, hook);
	int header = skb->data - skb_mac_header(skb);
	struct timespec64 now;
	struct pcap_packet packet;
	u8 *room;

	if (!(skb->pkt_type == PACKET_OUTGOING ? tap->out : tap->in))
		goto free;
	packet.bytes = skb->len + header + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);
	packet.captured_bytes = min(packet.bytes, tap->snap);
	spin_lock_bh(&tap->lock);
	ktime_get_real_ts64(&now);
	packet.seconds = now.tv_sec;
	packet.nanoseconds = now.tv_nsec;
	room = tap_room(tap, sizeof(packet) + packet.captured_bytes);
	if (!room) {
		tap->dropped++;
	} else if (copy_packet(skb, header, room + sizeof(packet), packet.captured_bytes)) {
		tap->filling->used -= sizeof(packet) + packet.captured_bytes;
		tap->dropped++;
	} else {
		memcpy(room, &packet, sizeof(packet));
		tap->captured++;
	}
	spin_unlock_bh(&tap->lock);
free:
	consume_skb(skb);
	return 0;
}

static struct block *tap_next_full(struct tap *tap, struct block *written)
{
	struct block *next;

	spin_lock_bh(&tap->lock);
	if (written)
		list_add_tail(&written->list, &tap->empty);
	next = list_first_entry_or_null(&tap->full, struct block, list);
	if (next)
		list_del(&next->list);
	spin_unlock_bh(&tap->lock);
	return next;
}

static void tap_write(struct work_struct *work)
{
	struct tap *tap = container_of(work, struct tap, write);
	struct block *block = NULL;
	ssize_t n;

	while ((block = tap_next_full(tap, block))) {
		n = kernel_write(tap->file, block->data, block->used, &tap->file->f_pos);
		if (n != block->used && !tap->error)
			tap->error = n < 0 ? n : -EIO;
	}
}

static void tap_unhook(struct tap *tap)
{
	struct net_device *dev = tap->hook.dev;

	if (!dev)
		return;
	dev_remove_pack(&tap->hook);
	tap->hook.dev = NULL;
	dev_put(dev);
}

static int tap_event(struct notifier_block *events, unsigned long event, void *info)
{
	struct tap *tap = container_of(events, struct tap, events);

	if (event == NETDEV_UNREGISTER && netdev_notifier_info_to_dev(info) == tap->hook.dev)
		tap_unhook(tap);
	return NOTIFY_DONE;
}

/* Stop, and write what is left to the file; returns the error of the first failed write. */
static int tap_end(struct tap *tap)
{
	int err;

	if (tap->events.notifier_call)
		unregister_netdevice_notifier(&tap->events);
	tap->events.notifier_call = NULL;
	tap_unhook(tap);
	if (tap->filling)
		list_add_tail(&tap->filling->list, &tap->full);
	tap->filling = NULL;
	schedule_work(&tap->write);
	flush_work(&tap->write);
	err = filemap_write_and_wait(tap->file->f_mapping);
	return tap->error ?: err;
}

static int tap_finish(struct instrument *instrument, char *summary, size_t size)
{
	struct tap *tap = tap_of(instrument);
	int err = tap_end(tap);

	if (err)
		return err;
	return scnprintf(summary, size,
			 "%llu packets captured\n%llu packets received by filter\n%llu packets dropped by kernel\n",
			 tap->captured, tap->captured + tap->dropped, tap->dropped);
}

static void tap_release(struct instrument *instrument)
{
	struct tap *tap = tap_of(instrument);
	struct block *block, *next;

	if (!IS_ERR_OR_NULL(tap->file))
		tap_end(tap);
	list_for_each_entry_safe(block, next, &tap->empty, list)
		kfree(block);
	if (!IS_ERR_OR_NULL(tap->file))
		fput(tap->file);
	kfree(tap);
}

static const struct instrument_ops tap_ops = {
	.finish		= tap_finish,
	.release	= tap_release,
};

/* The file, and its header in the first block. */
static int tap_prepare(struct tap *tap, const char *path)
{
	const struct pcap_file header = {
		.magic = PCAP_MAGIC_NS, .major = 2, .minor = 4,
		.snap = tap->snap, .link_type = PCAP_ETHERNET,
	};
	void *room;

	tap->file = testbed_create(path);
	if (IS_ERR(tap->file))
		return PTR_ERR(tap->file);
	room = tap_room(tap, sizeof(header));
	if (!room)
		return -ENOMEM;
	memcpy(room, &header, sizeof(header));
	return 0;
}

static int tap_interface(struct tap *tap, const char *name)
{
	struct net_device *dev = dev_get_by_name(current->nsproxy->net_ns, name);

	if (!dev)
		return -ENODEV;
	if (dev->type != ARPHRD_ETHER && dev->type != ARPHRD_LOOPBACK) {
		pr_err("%s: not an Ethernet interface, and a capture is of Ethernet\n", name);
		dev_put(dev);
		return -EPROTONOSUPPORT;
	}
	tap->hook.dev = dev;
	return 0;
}

int tap_command(struct instrument **instrument, int argc, char **argv)
{
	struct tap *tap;
	int err;

	if (argc != 5 || *instrument)
		return -EINVAL;
	tap = kzalloc(sizeof(*tap), GFP_KERNEL);
	if (!tap)
		return -ENOMEM;
	tap->instrument.ops = &tap_ops;
	spin_lock_init(&tap->lock);
	INIT_LIST_HEAD(&tap->empty);
	INIT_LIST_HEAD(&tap->full);
	INIT_WORK(&tap->write, tap_write);
	tap->in = !strcmp(argv[2], "in") || !strcmp(argv[2], "inout");
	tap->out = !strcmp(argv[2], "out") || !strcmp(argv[2], "inout");
	err = kstrtou32(argv[3], 10, &tap->snap);
	if (!err && ((!tap->in && !tap->out) || !tap->snap || tap->snap > MOST_SNAP))
		err = -EINVAL;
	if (!err)
		err = tap_prepare(tap, argv[4]);
	if (!err)
		err = tap_interface(tap, argv[1]);
	if (err) {
		tap_release(&tap->instrument);
		return err;
	}
	tap->hook.type = htons(ETH_P_ALL);
	tap->hook.func = tap_packet;
	dev_add_pack(&tap->hook);
	tap->events.notifier_call = tap_event;
	err = register_netdevice_notifier(&tap->events);
	if (err) {
		tap->events.notifier_call = NULL;
		tap_release(&tap->instrument);
		return err;
	}
	*instrument = &tap->instrument;
	return 0;
}
