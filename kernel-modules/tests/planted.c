// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bugs on purpose, one per load: insmod planted.ko bug=NAME. The sanitised kernel must report each:
 * only then does its silence about the other modules mean something.
 */

#include <linux/kmemleak.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>

#define BYTES 64

static char *bug = "";
module_param(bug, charp, 0);
MODULE_PARM_DESC(bug, "which one");

static DEFINE_MUTEX(first_lock);
static DEFINE_MUTEX(second_lock);
static DEFINE_SPINLOCK(spin);
static int __rcu *shared;
static int sink;

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

static const struct {
	const char *name;
	void (*make)(void);
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
};

static int __init planted_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (!strcmp(bug, bugs[i].name)) {
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

MODULE_DESCRIPTION("Bugs that a sanitised kernel must notice");
MODULE_LICENSE("GPL");
