/* SPDX-License-Identifier: GPL-2.0-only */
/* How a request can be broken, whichever qdisc it is for. */
#ifndef MUTATIONS_H
#define MUTATIONS_H

#include "requests.h"

static struct attribute *any_attribute(struct request *r)
{
	if (!r->n_attributes) {
		r->has_options = true;
		add_value(r, &tested->options[below(tested->n_options)], draw());
	}
	return &r->attributes[below(r->n_attributes)];
}

static void out_of_range(struct request *r)
{
	const struct option *option = &tested->options[below(tested->n_options)];
	int64_t value = one_in(2) ? option->max + 1 + (int64_t)(any_size() >> 1)
				  : option->min - 1 - (int64_t)(any_size() >> 1);

	r->has_options = true;
	add_value(r, option, one_in(4) ? (int64_t)draw() : value);
}

static void wrong_length(struct request *r)
{
	struct attribute *a = any_attribute(r);

	a->data = noise + below(64);
	a->bytes = below(20);
	a->claims = NLA_HDRLEN + a->bytes;
}

static void wrong_claim(struct request *r)
{
	any_attribute(r)->claims = one_in(2) ? below(8) : draw();
}

static void wrong_flags(struct request *r)
{
	if (one_in(8)) {
		r->flat = true;
		return;
	}
	any_attribute(r)->type ^= one_in(2) ? NLA_F_NESTED : NLA_F_NET_BYTEORDER;
}

static void nested(struct request *r)
{
	struct attribute *a = any_attribute(r);

	r->inner[0] = (struct nlattr){ sizeof(r->inner), draw() };
	r->inner[1] = (struct nlattr){ below(16), draw() };
	a->data = r->inner;
	a->bytes = sizeof(r->inner);
	a->claims = NLA_HDRLEN + a->bytes;
	a->type |= NLA_F_NESTED;
}

static void twice(struct request *r)
{
	struct attribute *a = any_attribute(r);

	add(r, a->type, a->data, a->bytes);
}

static void unknown(struct request *r)
{
	r->has_options = true;
	add(r, tested->last + 1 + below(100), noise, below(16));
}

static void reserved(struct request *r)
{
	/* Also 0, which follows the last of them. */
	uint16_t type = tested->dumped[below(ARRAY_SIZE(tested->dumped))];

	r->has_options = true;
	add(r, one_in(3) ? tested->pad : type, noise, below(9));
}

static void noise_as_options(struct request *r)
{
	r->has_options = true;
	r->n_attributes = 0;
	add(r, draw(), noise + below(4096), below(300));
	add(r, draw(), noise + below(4096), below(300));
}

static void cut_short(struct request *r)
{
	r->cut = 1 + below(40);
}

static void wrong_kind(struct request *r)
{
	switch (below(4)) {
	case 0:
		r->kind_bytes = 0;
		break;
	case 1:
		r->kind_bytes = 3;	/* unterminated */
		break;
	case 2:
		memset(r->kind, 'x', sizeof(r->kind));
		r->kind_bytes = sizeof(r->kind);
		break;
	default:
		r->kind[0]++;
	}
}

static void wrong_place(struct request *r)
{
	switch (below(4)) {
	case 0:
		r->tc.tcm_ifindex = draw();
		break;
	case 1:
		r->tc.tcm_parent = draw();
		break;
	case 2:
		r->tc.tcm_parent = one_in(2) ? TC_H_INGRESS : 0;
		break;
	default:
		r->tc.tcm_handle = draw();
	}
}

/* A size table, which turns packets' lengths into any others. */
static void size_table(struct request *r)
{
	r->has_stab = true;
	r->stab = (struct tc_sizespec){
		.cell_log = below(12), .size_log = below(12), .cell_align = below(3) - 1,
		.overhead = one_in(2) ? below(100) : draw(), .mpu = any_size(),
	};
	if (r->has_options && one_in(4))
		add_value(r, option_of(tested->overhead), within(-64, 1024));
}

static const struct mutation any_mutations[] = {
	{ "out of range", out_of_range },
	{ "wrong length", wrong_length },
	{ "wrong claim", wrong_claim },
	{ "wrong flags", wrong_flags },
	{ "nested", nested },
	{ "twice", twice },
	{ "unknown", unknown },
	{ "reserved", reserved },
	{ "noise", noise_as_options },
	{ "cut", cut_short },
	{ "kind", wrong_kind },
	{ "place", wrong_place },
	{ "size table", size_table },
};

static const struct mutation *mutation(unsigned int which)
{
	return which < ARRAY_SIZE(any_mutations) ? &any_mutations[which] :
		&tested->mutations[which - ARRAY_SIZE(any_mutations)];
}

static void mutate(struct request *r)
{
	static const uint8_t how_many[] = { 0, 0, 0, 1, 1, 1, 1, 2, 2, 3 };
	unsigned int n = how_many[below(ARRAY_SIZE(how_many))];

	while (n--) {
		unsigned int which = below(ARRAY_SIZE(any_mutations) + tested->n_mutations);

		mutation(which)->make(r);
		r->mutations |= 1u << which;
	}
}

static const char *mutation_names(uint32_t made)
{
	static char names[160];
	unsigned int i;

	names[0] = '\0';
	for (i = 0; i < ARRAY_SIZE(any_mutations) + tested->n_mutations; i++)
		if (made & 1u << i) {
			strncat(names, mutation(i)->name, sizeof(names) - strlen(names) - 1);
			strncat(names, ";", sizeof(names) - strlen(names) - 1);
		}
	return names;
}

#endif /* MUTATIONS_H */
