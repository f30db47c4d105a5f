/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Congestion controls of one module that differ by a number, which is part of their name: a socket,
 * a route or ss can name each.
 */
#ifndef TWOWAY_VARIANTS_H
#define TWOWAY_VARIANTS_H

#include <linux/module.h>
#include <net/tcp.h>

/**
 * struct variant - a congestion control with its number
 * @ops: what the stack sees of it
 * @value: the number; its meaning and unit are the module's
 */
struct variant {
	struct tcp_congestion_ops ops;
	u32 value;
};

/* The number of the socket's congestion control, which must be a variant. */
static inline u32 variant_value(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;

	return container_of(ops, struct variant, ops)->value;
}

/* A parameter's list of numbers: each within 1..most, and none twice. */
static inline int variants_check(const char *parameter, const char *unit,
				 const unsigned int *values, int count, u32 most)
{
	int i, j;

	for (i = 0; i < count; i++) {
		if (!values[i] || values[i] > most) {
			pr_err("%s: must be 1..%u %s, got %u\n", parameter, most, unit, values[i]);
			return -EINVAL;
		}
		for (j = 0; j < i; j++) {
			if (values[i] == values[j]) {
				pr_err("%s: %u is given twice\n", parameter, values[i]);
				return -EINVAL;
			}
		}
	}
	return 0;
}

static inline void variants_unregister(struct variant *variants, int count)
{
	while (count--)
		tcp_unregister_congestion_control(&variants[count].ops);
}

/*
 * Whether a socket holds the module. Its own init holds it once. A kernel that cannot unload
 * modules counts no users: then a socket must be assumed.
 */
static inline bool variants_held(void)
{
#ifdef CONFIG_MODULE_UNLOAD
	return module_refcount(THIS_MODULE) > 1;
#else
	return true;
#endif
}

/*
 * Register all variants, or none. To be called by a module's init, as the last that can fail.
 *
 * The kernel does not tell modules whether a name is taken: registering it is the only way to ask.
 * A socket may use the first names, therefore, when a later one turns out to be taken. They are
 * withdrawn then, and no other socket can get them. But a module whose init fails is freed, even
 * with such a socket's control in it. If there is one, the module stays loaded, without a name;
 * rmmod removes it when the socket is closed.
 *
 * count: how many there are; then, how many are registered. Returns 0 if the module has to stay.
 */
static inline int variants_register(struct variant *variants, int *count)
{
	int i, err;

	for (i = 0; i < *count; i++) {
		err = tcp_register_congestion_control(&variants[i].ops);
		if (err)
			break;
	}
	if (i == *count)
		return 0;

	pr_err("%s: there is a congestion control of this name already\n", variants[i].ops.name);
	variants_unregister(variants, i);
	*count = 0;
	if (!i || !variants_held())
		return err;
	pr_err("a socket uses another: loaded without names until it is closed, then to be removed\n");
	return 0;
}

#endif /* TWOWAY_VARIANTS_H */
