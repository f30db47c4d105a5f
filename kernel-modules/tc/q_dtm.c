// SPDX-License-Identifier: GPL-2.0-only
/*
 * q_dtm.so - what tc needs to know about the queueing discipline dtm
 *
 * tc loads $TC_LIB_DIR/q_dtm.so, or the one in its own directory, when it meets the kind "dtm", and
 * calls the functions in dtm_qdisc_util. In between are three tables:
 *
 *	words of `add`  -->  options[], lists[]  -->  attributes of TCA_OPTIONS  -->  kernel
 *	text, JSON of `show`  <--  options[], lists[]  <--  attributes  <--  kernel
 *	text, JSON of `show -s`  <--  statistics[]  <--  struct tc_dtm_xstats  <--  kernel
 *
 * A row of options[] or lists[] is all there is to say about an option: reading, range, errors,
 * printing. So `show` prints what `add` and `change` accept, and it means the same value: one that
 * would have to be rounded is refused. All mistakes of a command are reported at once, each with
 * the range and the offending text, for the kernel would only say that an integer is out of range.
 * What concerns several options or channels is left to the kernel, which knows the present ones and
 * answers in sentences of its own.
 */
#include <inttypes.h>
#include <linux/pkt_dtm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantity.h"
#include "tc_exports.h"

/* What tc's buffer has room for, behind the headers. */
#define MESSAGE_BYTES (64 * 1024)

/* Options */

static const char *const allocators[] = {
	"static", "rate", "buffer", "hysteresis", "trace", NULL,
};

static const char *const roundings[] = { "up", "nearest", "down", NULL };
static const char *const counted[] = { "arrivals", "accepted", NULL };
static const char *const paces[] = { "apart", "grid", NULL };
static const char *const holds[] = { "estimate", "slots", NULL };

#define SECOND INT64_C(1000000000)

static const struct option {
	const char *name;
	const char *json;
	uint16_t attribute;
	uint8_t bytes;			/* of the attribute's value; 0: a name */
	const struct unit *units;	/* or NULL: one of ... */
	const char *const *words;
	int64_t min;			/* in the smallest unit; of a name, its length */
	int64_t max;
} options[] = {
	{ "slots", "slots", TCA_DTM_SLOTS, 4, counts, NULL, 1, TC_DTM_MAX_SLOTS },
	{ "initial", "initial", TCA_DTM_INITIAL, 4, counts, NULL, 1, TC_DTM_MAX_SLOTS },
	{ "limit", "limit", TCA_DTM_LIMIT, 4, counts, NULL, 1, 1000000000 },
	{ "limit-bytes", "limit_bytes", TCA_DTM_LIMIT_BYTES, 4, counts, NULL, 0, UINT32_MAX },
	{ "overhead", "overhead", TCA_DTM_OVERHEAD, 4, counts, NULL, -64, 1024 },
	{ "min", "min", TCA_DTM_MIN_SLOTS, 4, counts, NULL, 1, TC_DTM_MAX_SLOTS },
	{ "max", "max", TCA_DTM_MAX_SLOTS, 4, counts, NULL, 1, TC_DTM_MAX_SLOTS },
	{ "change", "change_ns", TCA_DTM_CHANGE, 8, times, NULL, 0, 3600 * SECOND },
	{ "signalling", "signalling_ns", TCA_DTM_SIGNALLING, 8, times, NULL, 0, 60 * SECOND },
	{ "pool", "pool", TCA_DTM_POOL, 0, NULL, NULL, 1, TC_DTM_POOL_NAME - 1 },
	{ "netnsid", "netnsid", TCA_DTM_POOL_NETNSID, 4, counts, NULL, -1, INT32_MAX },
	{ "owned", "owned", TCA_DTM_OWNED, 4, counts, NULL, 0, TC_DTM_MAX_SLOTS },
	{ "slot", "slot_bit", TCA_DTM_SLOT_RATE, 4, rates, NULL, 1000, TC_DTM_SLOT_RATE },
	{ "allocator", "allocator", TCA_DTM_ALLOCATOR, 1, NULL, allocators,
	  0, TC_DTM_ALLOCATOR_MAX },
	{ "sample", "sample_ns", TCA_DTM_SAMPLE, 8, times, NULL, SECOND / 1000, 60 * SECOND },
	{ "shift-up", "shift_up", TCA_DTM_SHIFT_UP, 1, counts, NULL, 0, 10 },
	{ "shift-down", "shift_down", TCA_DTM_SHIFT_DOWN, 1, counts, NULL, 0, 10 },
	{ "margin", "margin", TCA_DTM_MARGIN, 4, thousandths, NULL, 0, 1000 * TC_DTM_MAX_SLOTS },
	{ "corridor", "corridor", TCA_DTM_CORRIDOR, 4, thousandths, NULL,
	  0, 1000 * TC_DTM_MAX_SLOTS },
	{ "rounding", "rounding", TCA_DTM_ROUNDING, 1, NULL, roundings, 0, TC_DTM_ROUND_MAX },
	{ "count", "count", TCA_DTM_COUNT, 1, NULL, counted, 0, TC_DTM_COUNT_MAX },
	{ "hold-on-loss", "hold_on_loss_ns", TCA_DTM_HOLD_ON_LOSS, 8, times, NULL, 0, 60 * SECOND },
	{ "estimate", "estimate_bit", TCA_DTM_ESTIMATE, 8, rates, NULL, 0, INT64_C(1) << 40 },
	{ "grain", "grain_bit", TCA_DTM_GRAIN, 4, rates, NULL, 0, UINT32_MAX },
	{ "pace", "pace", TCA_DTM_PACE, 1, NULL, paces, 0, TC_DTM_PACE_MAX },
	{ "hold", "hold", TCA_DTM_HOLD, 1, NULL, holds, 0, TC_DTM_HOLD_MAX },
	{ "high", "high", TCA_DTM_HIGH, 4, counts, NULL, 1, UINT32_MAX },
	{ "low", "low", TCA_DTM_LOW, 4, counts, NULL, 0, UINT32_MAX },
	{ "rise", "rise_ns", TCA_DTM_RISE, 8, times, NULL, 0, 60 * SECOND },
	{ "fall", "fall_ns", TCA_DTM_FALL, 8, times, NULL, 0, 60 * SECOND },
	{ "step", "step", TCA_DTM_STEP, 4, counts, NULL, 1, TC_DTM_MAX_SLOTS },
};

/* Lists of entries whose members are numbers; in text "A:B:C,A:B:C,...". */
#define MOST_FIELDS	3
#define MOST_MEMBERS	3		/* TCA_DTM_LEVEL_MAX, TCA_DTM_STEP_MAX */

static const struct list {
	const char *name;
	const char *json;
	uint16_t attribute;
	unsigned int most;
	const char *form;		/* for errors */
	unsigned int n_fields;
	struct field {
		const char *json;
		uint16_t attribute;	/* in the entry */
		uint8_t bytes;
		const struct unit *units;
		int64_t min;
		int64_t max;
	} fields[MOST_FIELDS];
} lists[] = {
	{ "levels", "levels", TCA_DTM_LEVELS, TC_DTM_MAX_LEVELS,
	  "2..32 of SLOTS:UP:DOWN, SLOTS 1..65535, UP and DOWN 0..4294967295", 3,
	  { { "slots", TCA_DTM_LEVEL_SLOTS, 4, counts, 1, TC_DTM_MAX_SLOTS },
	    { "up", TCA_DTM_LEVEL_UP, 4, counts, 0, UINT32_MAX },
	    { "down", TCA_DTM_LEVEL_DOWN, 4, counts, 0, UINT32_MAX } } },
	{ "steps", "steps", TCA_DTM_STEPS, TC_DTM_MAX_STEPS,
	  "1..1024 of AFTER:SLOTS, AFTER 0s..3600s, SLOTS 1..65535", 2,
	  { { "after_ns", TCA_DTM_STEP_AFTER, 8, times, 0, 3600 * SECOND },
	    { "slots", TCA_DTM_STEP_SLOTS, 4, counts, 1, TC_DTM_MAX_SLOTS } } },
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define FOR_EACH(row, table) for ((row) = (table); (row) < (table) + ROWS(table); (row)++)

static const struct statistic {
	const char *json;
	const char *text;
	size_t offset;
	size_t bytes;
} statistics[] = {
#define STATISTIC(json, text, member) { json, text, offsetof(struct tc_dtm_xstats, member), \
					sizeof(((struct tc_dtm_xstats *)0)->member) }
	STATISTIC("slots", "  slots %" PRIu64, slots),
	STATISTIC("target", " target %" PRIu64, target),
	STATISTIC("borrowed", " borrowed %" PRIu64, borrowed),
	STATISTIC("pool_free", " pool-free %" PRIu64, pool_free),
	STATISTIC("estimate_bit", " estimate %" PRIu64 "bit", estimate),
	STATISTIC("lower_bit", " corridor %" PRIu64, lower),
	STATISTIC("upper_bit", "..%" PRIu64 "bit\n", upper),
	STATISTIC("samples", "  samples %" PRIu64, samples),
	STATISTIC("grows", " grows %" PRIu64, grows),
	STATISTIC("shrinks", " shrinks %" PRIu64, shrinks),
	STATISTIC("denied", " denied %" PRIu64, denied),
	STATISTIC("reclaimed", " reclaimed %" PRIu64 "\n", reclaimed),
	STATISTIC("slot_seconds", "  slot-seconds %" PRIu64, slot_seconds),
	STATISTIC("slot_ns", ".%09" PRIu64, slot_ns),
	STATISTIC("age_ns", " age %" PRIu64 "ns", age_ns),
	STATISTIC("last_change_ns", " last-change %" PRIu64 "ns", last_change_ns),
	STATISTIC("peak_bytes", " peak %" PRIu64 "b", peak_bytes),
	STATISTIC("peak_packets", " %" PRIu64 "p", peak_packets),
};

static void explain(void)
{
	fputs("Usage: ... dtm [ slots N | initial N ] [ limit PACKETS ] [ limit-bytes BYTES ]\n"
	      "               [ overhead BYTES ] [ framed | unframed ] [ min N ] [ max N ] [ change TIME ]\n"
	      "               [ signalling TIME ] [ pool NAME [ netns NAME | netnsid N ] ]\n"
	      "               [ owned N ] [ slot RATE ] [ allocator KIND ] [ restart ]\n"
	      "KIND: static\n"
	      "    | rate [ sample TIME ] [ shift N | shift-up N shift-down N ] [ margin SLOTS ]\n"
	      "           [ corridor SLOTS ] [ rounding { up | nearest | down } ]\n"
	      "           [ count { arrivals | accepted } ] [ hold-on-loss TIME ] [ estimate RATE ]\n"
	      "           [ grain RATE ] [ pace { apart | grid } ] [ hold { estimate | slots } ]\n"
	      "    | buffer [ high BYTES ] [ low BYTES ] [ rise TIME ] [ fall TIME ] [ step N ]\n"
	      "    | hysteresis levels SLOTS:UP:DOWN,SLOTS:UP:DOWN,...   (bytes of backlog)\n"
	      "    | trace steps AFTER:SLOTS,...                         (times between steps)\n"
	      "A slot is 512 kbit/s if not given. TIME: 100ms, 1.5s, 125us, 7ns. RATE: 5Mbit, 512kbit, 100bit.\n"
	      "`dtm pool add NAME slots N` makes a pool. tc-dtm(8) explains each.\n", stderr);
}

/* Values of attributes */

static uint64_t read_bytes(const void *data, size_t bytes)
{
	uint64_t u64 = 0;
	uint32_t u32 = 0;

	if (bytes == sizeof(u64))
		memcpy(&u64, data, bytes);
	else if (bytes == sizeof(u32))
		memcpy(&u32, data, bytes);
	else if (bytes == 1)
		return *(const uint8_t *)data;
	return u64 | u32;
}

static void add_bytes(struct nlmsghdr *n, int attribute, uint64_t u64, size_t bytes)
{
	uint32_t u32 = u64;
	uint8_t u8 = u64;
	const void *data = bytes == 1 ? (void *)&u8 : bytes == 4 ? (void *)&u32 : (void *)&u64;

	addattr_l(n, MESSAGE_BYTES, attribute, data, bytes);
}

/* The kernel sets a flag in the type of a nest, which tc's own parser does not mask. */
static void find_attributes(const struct rtattr *found[], unsigned int max,
			    const struct rtattr *outer)
{
	const struct rtattr *attr = RTA_DATA(outer);
	int left = RTA_PAYLOAD(outer);

	memset(found, 0, (max + 1) * sizeof(found[0]));
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if ((attr->rta_type & NLA_TYPE_MASK) <= max)
			found[attr->rta_type & NLA_TYPE_MASK] = attr;
}

/* Parsing: each returns false for a mistake, having said so */

static bool complain(const struct option *o, const char *name, const char *got)
{
	fprintf(stderr, "dtm: \"%s\" must be ", name);
	if (!o->bytes)
		fprintf(stderr, "a name of %d..%d characters", (int)o->min, (int)o->max);
	else if (o->units)
		fprintf(stderr, "%s..%s", show_quantity(o->units, o->min).s,
			show_quantity(o->units, o->max).s);
	else
		for (int i = 0; o->words[i]; i++)
			fprintf(stderr, "%s%s", i ? " | " : "", o->words[i]);
	fprintf(stderr, ", got \"%s\"\n", got);
	return false;
}

/* Errors are about the name that was used, attributes about the option. */
static bool parse_option(struct nlmsghdr *n, const struct option *o, const char *name,
			 const char *text)
{
	int64_t value = 0;

	if (!o->bytes) {
		if ((int64_t)strlen(text) < o->min || (int64_t)strlen(text) > o->max)
			return complain(o, name, text);
		addattr_l(n, MESSAGE_BYTES, o->attribute, text, strlen(text) + 1);
		return true;
	}
	if (o->units) {
		if (!read_quantity(text, o->units, &value) || value < o->min || value > o->max)
			return complain(o, name, text);
	} else {
		while (o->words[value] && strcmp(text, o->words[value]))
			value++;
		if (!o->words[value])
			return complain(o, name, text);
	}
	add_bytes(n, o->attribute, value, o->bytes);
	return true;
}

static bool parse_field(struct nlmsghdr *n, const struct field *field, const char *text)
{
	int64_t value;

	if (!text || !read_quantity(text, field->units, &value) || value < field->min ||
	    value > field->max)
		return false;
	add_bytes(n, field->attribute, value, field->bytes);
	return true;
}

static bool parse_list(struct nlmsghdr *n, const struct list *list, const char *text)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_BYTES, list->attribute | NLA_F_NESTED);
	char *copy = strdup(text), *rest = copy, *item;
	unsigned int count = 0;
	bool good = copy;

	while (good && (item = strsep(&rest, ","))) {
		struct rtattr *entry = addattr_nest(n, MESSAGE_BYTES, TCA_DTM_ENTRY | NLA_F_NESTED);

		good = count++ < list->most;
		for (unsigned int i = 0; good && i < list->n_fields; i++)
			good = parse_field(n, &list->fields[i], strsep(&item, ":"));
		good = good && !item;
		addattr_nest_end(n, entry);
	}
	free(copy);
	addattr_nest_end(n, nest);
	if (!good)
		fprintf(stderr, "dtm: \"%s\" must be %s, got \"%s\"\n", list->name, list->form,
			text);
	return good;
}

static const struct option *find_option(const char *name)
{
	const struct option *o;

	FOR_EACH(o, options)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

static const struct list *find_list(const char *name)
{
	const struct list *list;

	FOR_EACH(list, lists)
		if (!strcmp(list->name, name))
			return list;
	return NULL;
}

/* Parse the option that some words begin with; returns how many words it is. */
static int parse_words(struct nlmsghdr *n, int argc, char **argv, bool *good)
{
	const char *name = argv[0], *text = argc > 1 ? argv[1] : NULL;
	bool framed = !strcmp(name, "framed"), shift = !strcmp(name, "shift");
	bool netns = !strcmp(name, "netns");
	const struct option *o = find_option(shift ? "shift-up" : name);
	const struct list *list = find_list(name);

	if (framed || !strcmp(name, "unframed")) {
		add_bytes(n, TCA_DTM_FRAMED, framed, 1);
		return 1;
	}
	if (!strcmp(name, "restart")) {
		addattr_l(n, MESSAGE_BYTES, TCA_DTM_RESTART, NULL, 0);
		return 1;
	}
	if (!o && !list && !netns) {
		fprintf(stderr, "dtm: what is \"%s\"? `tc qdisc add dtm help` lists options\n",
			name);
		*good = false;
		return 1;
	}
	if (!text) {
		fprintf(stderr, "dtm: \"%s\" needs a value\n", name);
		*good = false;
		return 1;
	}
	if (netns) {
		*good &= add_netns(n, MESSAGE_BYTES, TCA_DTM_POOL_NETNS_FD, text);
		if (!*good)
			fprintf(stderr, "dtm: there is no network namespace \"%s\"\n", text);
		return 2;
	}
	*good &= list ? parse_list(n, list, text) : parse_option(n, o, name, text);
	if (shift && *good)
		parse_option(n, find_option("shift-down"), name, text);
	return 2;
}

static int dtm_parse_opt(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			 const char *dev)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_BYTES, TCA_OPTIONS | NLA_F_NESTED);
	bool good = true;

	(void)qu;
	(void)dev;
	while (argc > 0) {
		int used;

		if (!strcmp(argv[0], "help")) {
			explain();
			return -1;
		}
		used = parse_words(n, argc, argv, &good);
		argc -= used;
		argv += used;
	}
	addattr_nest_end(n, nest);
	return good ? 0 : -1;
}

/* Printing */

static void print_text(const char *text)
{
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
}

static void print_pair(const char *name, const char *text)
{
	print_text(name);
	print_text(" ");
	print_text(text);
	print_text(" ");
}

static void print_option(const struct option *o, const struct rtattr *attr)
{
	int64_t value = read_bytes(RTA_DATA(attr), RTA_PAYLOAD(attr));
	struct text text;

	if (!o->bytes) {
		print_pair(o->name, RTA_DATA(attr));
		print_color_string(PRINT_JSON, COLOR_NONE, o->json, NULL, RTA_DATA(attr));
		return;
	}
	if (!o->units) {
		/* A newer kernel may have a value without a word here. */
		const char *word = value <= o->max ? o->words[value] : "?";

		print_pair(o->name, word);
		print_color_string(PRINT_JSON, COLOR_NONE, o->json, NULL, word);
		return;
	}
	if (o->min < 0)
		value = (int32_t)value;
	text = show_quantity(o->units, value);
	print_pair(o->name, text.s);
	if (o->units != thousandths) {
		print_color_s64(PRINT_JSON, COLOR_NONE, o->json, NULL, value);
	} else if (is_json_context()) {
		/* tc's own floating-point numbers have six digits; these have up to seven. */
		jsonw_name(get_json_writer(), o->json);
		jsonw_printf(get_json_writer(), "%s", text.s);
	}
}

static void print_entry(const struct list *list, const struct rtattr *entry)
{
	const struct rtattr *tb[MOST_MEMBERS + 1];

	find_attributes(tb, MOST_MEMBERS, entry);
	open_json_object(NULL);
	for (unsigned int k = 0; k < list->n_fields; k++) {
		const struct field *field = &list->fields[k];
		const struct rtattr *attr = tb[field->attribute];
		int64_t value = attr ? read_bytes(RTA_DATA(attr), RTA_PAYLOAD(attr)) : 0;

		if (k)
			print_text(":");
		print_text(show_quantity(field->units, value).s);
		print_color_s64(PRINT_JSON, COLOR_NONE, field->json, NULL, value);
	}
	close_json_object();
}

static void print_list(const struct list *list, const struct rtattr *attr)
{
	const struct rtattr *entry = RTA_DATA(attr);
	int left = RTA_PAYLOAD(attr);

	print_text(list->name);
	open_json_array(PRINT_JSON, list->json);
	for (const char *before = " "; RTA_OK(entry, left); entry = RTA_NEXT(entry, left)) {
		print_text(before);
		print_entry(list, entry);
		before = ",";
	}
	close_json_array(PRINT_JSON, NULL);
	print_text(" ");
}

static int dtm_print_opt(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	const struct rtattr *tb[TCA_DTM_MAX + 1];
	const struct option *o;
	const struct list *list;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	find_attributes(tb, TCA_DTM_MAX, opt);
	FOR_EACH(o, options)
		if (tb[o->attribute])
			print_option(o, tb[o->attribute]);
	if (tb[TCA_DTM_FRAMED]) {
		bool framed = read_bytes(RTA_DATA(tb[TCA_DTM_FRAMED]), 1);

		print_text(framed ? "framed " : "unframed ");
		print_color_bool(PRINT_JSON, COLOR_NONE, "framed", NULL, framed);
	}
	FOR_EACH(list, lists)
		if (tb[list->attribute])
			print_list(list, tb[list->attribute]);
	/* `tc monitor`: the kernel's notifications have no room for steps. */
	if (tb[TCA_DTM_N_STEPS])
		print_color_u64(PRINT_ANY, COLOR_NONE, "n_steps", "(%" PRIu64 " steps) ",
				read_bytes(RTA_DATA(tb[TCA_DTM_N_STEPS]), 4));
	return 0;
}

static int dtm_print_xstats(struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	const struct statistic *s;

	(void)qu;
	(void)f;
	/* A kernel may have more or fewer statistics: those that both know keep their places. */
	FOR_EACH(s, statistics)
		if (xstats && s->offset + s->bytes <= RTA_PAYLOAD(xstats))
			print_color_u64(PRINT_ANY, COLOR_NONE, s->json, s->text,
					read_bytes((char *)RTA_DATA(xstats) + s->offset, s->bytes));
	return 0;
}

struct qdisc_util dtm_qdisc_util = {
	.id		= "dtm",
	.parse_qopt	= dtm_parse_opt,
	.print_qopt	= dtm_print_opt,
	.print_xstats	= dtm_print_xstats,
};
