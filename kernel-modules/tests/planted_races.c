// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bugs on purpose that take two processors, one per load: insmod planted_races.ko bug=NAME. None
 * of them can happen on one processor, because none sleeps or is preempted where it matters.
 */

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

/* Enough for the two to meet. */
#define ROUNDS	20000
#define READER_US	2

static char *bug = "";
module_param(bug, charp, 0);
MODULE_PARM_DESC(bug, "which one");

struct shared {
	unsigned int value;
};

static DEFINE_SPINLOCK(first_lock);
static DEFINE_SPINLOCK(second_lock);
static DEFINE_SPINLOCK(taking_turns);
static struct shared __rcu *published;
static unsigned int counter;
static unsigned int sink;

/* Both add to a number that no lock protects. */
static void count_unlocked(int processor)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		preempt_disable();
		counter++;
		preempt_enable();
	}
}

/* One processor reads what the other replaces and frees without waiting for a grace period. */
static void free_too_early(int processor)
{
	struct shared *next, *before;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (processor) {
			rcu_read_lock();
			before = rcu_dereference(published);
			udelay(READER_US);
			if (before)
				WRITE_ONCE(sink, READ_ONCE(before->value));
			rcu_read_unlock();
			continue;
		}
		next = kzalloc(sizeof(*next), GFP_KERNEL);
		before = rcu_replace_pointer(published, next, true);
		kfree(before);
	}
}

/* One processor after the other, so that nothing hangs: only their orders contradict. */
static void lock_in_both_orders(int processor)
{
	spinlock_t *outer = processor ? &first_lock : &second_lock;
	spinlock_t *inner = processor ? &second_lock : &first_lock;

	spin_lock(&taking_turns);
	spin_lock(outer);
	spin_lock(inner);
	spin_unlock(inner);
	spin_unlock(outer);
	spin_unlock(&taking_turns);
}

static const struct {
	const char *name;
	void (*make)(int processor);
} bugs[] = {
	{ "count_unlocked", count_unlocked },
	{ "free_too_early", free_too_early },
	{ "lock_in_both_orders", lock_in_both_orders },
};

static void (*make)(int processor);
static DECLARE_COMPLETION(done);

static int other_processor(void *unused)
{
	make(1);
	complete(&done);
	return 0;
}

static int __init planted_races_init(void)
{
	struct task_struct *task;
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (!strcmp(bug, bugs[i].name))
			make = bugs[i].make;
	if (!make)
		return -EINVAL;
	task = kthread_create(other_processor, NULL, "planted_races");
	if (IS_ERR(task))
		return PTR_ERR(task);
	wake_up_process(task);
	make(0);
	wait_for_completion(&done);
	kfree(rcu_dereference_protected(published, true));
	return 0;
}

static void __exit planted_races_exit(void)
{
}

module_init(planted_races_init);
module_exit(planted_races_exit);

MODULE_DESCRIPTION("Bugs of two processors that a kernel with checkers must notice");
MODULE_LICENSE("GPL");
