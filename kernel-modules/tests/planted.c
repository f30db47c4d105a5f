// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bugs on purpose, one per load: insmod planted.ko bug=NAME. Kernels with checkers must report
 * each: only then does their silence about the other modules mean something. Races are bugs of two
 * processors: none can happen on one, because none sleeps or is preempted where it matters.
 */

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kmemleak.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>

#define BYTES 64
/* Of a race: enough for the two processors to meet. */
#define ROUNDS	20000
#define READER_US	2

static char *bug = "";
module_param(bug, charp, 0);
MODULE_PARM_DESC(bug, "which one");

static DEFINE_MUTEX(first_lock);
static DEFINE_MUTEX(second_lock);
static DEFINE_SPINLOCK(spin);
static int __rcu *shared;
static int sink;

struct shared {
	unsigned int value;
};

static DEFINE_SPINLOCK(first_spin);
static DEFINE_SPINLOCK(second_spin);
static DEFINE_SPINLOCK(taking_turns);
static struct shared __rcu *published;
static unsigned int counter;

static void out_of_bounds(void)
{
	char *memory = kmalloc(BYTES, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(memory);
	WRITE_ONCE(sink, memory[BYTES]);
	kfree(memory);
}

static void use_after_free(void)
{
	char *memory = kmalloc(BYTES, GFP_KERNEL);

	kfree(memory);
	OPTIMIZER_HIDE_VAR(memory);
	WRITE_ONCE(sink, memory[0]);
}

static void stack_out_of_bounds(void)
{
	char memory[BYTES] = {};
	int index = BYTES;

	OPTIMIZER_HIDE_VAR(index);
	barrier_data(memory);
	WRITE_ONCE(sink, *(memory + index));
}

static void array_index(void)
{
	static int numbers[4];
	int index = 4;

	OPTIMIZER_HIDE_VAR(index);
	WRITE_ONCE(sink, numbers[index]);
}

static void shift(void)
{
	int bits = 32;

	OPTIMIZER_HIDE_VAR(bits);
	WRITE_ONCE(sink, 1 << bits);
}

static void misaligned(void)
{
	static int numbers[2];
	char *at = (char *)numbers + 1;

	OPTIMIZER_HIDE_VAR(at);
	WRITE_ONCE(sink, *(int *)at);
}

static void leak(void)
{
	char *memory = kmalloc(BYTES, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(memory);
}

static void lock_order(void)
{
	mutex_lock(&first_lock);
	mutex_lock(&second_lock);
	mutex_unlock(&second_lock);
	mutex_unlock(&first_lock);
	mutex_lock(&second_lock);
	mutex_lock(&first_lock);
	mutex_unlock(&first_lock);
	mutex_unlock(&second_lock);
}

static void sleep_in_atomic(void)
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
}

static void unlocked_rcu(void)
{
	WRITE_ONCE(sink, !rcu_dereference(shared));
}

static void expire(struct timer_list *timer)
{
}

static void free_active_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	timer_setup(timer, expire, 0);
	mod_timer(timer, jiffies + HZ);
	kfree(timer);
}

static void list_corruption(void)
{
	LIST_HEAD(head);
	LIST_HEAD(entry);

	list_add(&entry, &head);
	list_add(&entry, &head);
}

/* Races: each processor makes its own part */

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
	spinlock_t *outer = processor ? &first_spin : &second_spin;
	spinlock_t *inner = processor ? &second_spin : &first_spin;

	spin_lock(&taking_turns);
	spin_lock(outer);
	spin_lock(inner);
	spin_unlock(inner);
	spin_unlock(outer);
	spin_unlock(&taking_turns);
}

static const struct {
	const char *name;
	void (*make)(void);
	void (*race)(int processor);
} bugs[] = {
	{ "out_of_bounds", out_of_bounds },
	{ "use_after_free", use_after_free },
	{ "stack_out_of_bounds", stack_out_of_bounds },
	{ "array_index", array_index },
	{ "shift", shift },
	{ "misaligned", misaligned },
	{ "leak", leak },
	{ "lock_order", lock_order },
	{ "sleep_in_atomic", sleep_in_atomic },
	{ "unlocked_rcu", unlocked_rcu },
	{ "free_active_timer", free_active_timer },
	{ "list_corruption", list_corruption },
	{ "count_unlocked", .race = count_unlocked },
	{ "free_too_early", .race = free_too_early },
	{ "lock_in_both_orders", .race = lock_in_both_orders },
};

static void (*race)(int processor);
static DECLARE_COMPLETION(done);

static int other_processor(void *unused)
{
	race(1);
	complete(&done);
	return 0;
}

static int run_race(void)
{
	struct task_struct *task = kthread_run(other_processor, NULL, "planted");

	if (IS_ERR(task))
		return PTR_ERR(task);
	race(0);
	wait_for_completion(&done);
	kfree(rcu_dereference_protected(published, true));
	return 0;
}

static int __init planted_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++) {
		if (strcmp(bug, bugs[i].name))
			continue;
		race = bugs[i].race;
		if (race)
			return run_race();
		bugs[i].make();
		return 0;
	}
	return -EINVAL;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);

MODULE_DESCRIPTION("Bugs that a kernel with checkers must notice");
MODULE_LICENSE("GPL");
