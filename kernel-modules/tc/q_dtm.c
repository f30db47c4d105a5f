// SPDX-License-Identifier: GPL-2.0-only
/*
 * q_dtm.so - what tc needs to know about the queueing discipline dtm
 *
 * tc loads $TC_LIB_DIR/q_dtm.so, or the one in its own directory, when it meets the kind "dtm". It
 * is built without iproute2's sources: what tc provides to plugins is declared here, as it has
 * been since 5.10 (a first argument became const in 6.10, which changes nothing for us).
 *
 * Every option is a row of a table, from which come parsing, printing and the errors. `show`
 * prints what `add` accepts; numbers that are not exact in a unit are printed in a smaller one.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../pkt_dtm.h"

/* From tc */

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_qopt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_copt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(struct qdisc_util *qu, struct rtattr *opt, uint32_t block, bool *p);
};

enum { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
enum { COLOR_NONE = 6 };

struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int length);
int parse_rtattr(struct rtattr *tb[], int max, struct rtattr *rta, int length);
int print_color_string(int type, int color, const char *key, const char *format,
		       const char *value);
int print_color_s64(int type, int color, const char *key, const char *format, int64_t value);
int print_color_u64(int type, int color, const char *key, const char *format, uint64_t value);
int print_color_bool(int type, int color, const char *key, const char *format, bool value);
void open_json_array(int type, const char *key);
void close_json_array(int type, const char *delimiter);
void open_json_object(const char *key);
void close_json_object(void);
bool is_json_context(void);
struct json_writer *get_json_writer(void);
void jsonw_name(struct json_writer *json, const char *name);
void __attribute__((format(printf, 2, 3)))
jsonw_printf(struct json_writer *json, const char *format, ...);

#define MESSAGE_BYTES (64 * 1024)

/* Options */

enum kind {
	NUMBER,			/* of 32 bits */
	WORD,			/* one of a list, of 8 bits */
	SHIFT,			/* a number of 8 bits */
	TIME,			/* ns, of 64 bits */
	RATE,			/* bit/s, of 64 bits */
	SHARE,			/* slots with three decimals, in thousandths, of 32 bits */
};

struct option {
	const char *name;
	const char *json;
	uint16_t attribute;
	enum kind kind;
	int64_t min;
	int64_t max;
	const char *const *words;
};

static const char *const allocators[] = {
	"static", "rate", "buffer", "hysteresis", "trace", NULL
};

static const char *const roundings[] = { "up", "nearest", "down", NULL };
static const char *const counts[] = { "arrivals", "accepted", NULL };

#define SECOND INT64_C(1000000000)

static const struct option options[] = {
	{ "slots", "slots", TCA_DTM_SLOTS, NUMBER, 1, DTM_MAX_SLOTS, NULL },
	{ "limit", "limit", TCA_DTM_LIMIT, NUMBER, 1, 1000000000, NULL },
	{ "limit-bytes", "limit_bytes", TCA_DTM_LIMIT_BYTES, NUMBER, 0, UINT32_MAX, NULL },
	{ "overhead", "overhead", TCA_DTM_OVERHEAD, NUMBER, -64, 1024, NULL },
	{ "min", "min", TCA_DTM_MIN_SLOTS, NUMBER, 1, DTM_MAX_SLOTS, NULL },
	{ "max", "max", TCA_DTM_MAX_SLOTS, NUMBER, 1, DTM_MAX_SLOTS, NULL },
	{ "change", "change_ns", TCA_DTM_CHANGE, TIME, 0, 3600 * SECOND, NULL },
	{ "signalling", "signalling_ns", TCA_DTM_SIGNALLING, TIME, 0, 60 * SECOND, NULL },
	{ "pool", "pool", TCA_DTM_POOL, NUMBER, 1, DTM_MAX_SLOTS, NULL },
	{ "owned", "owned", TCA_DTM_OWNED, NUMBER, 0, DTM_MAX_SLOTS, NULL },
	{ "allocator", "allocator", TCA_DTM_ALLOCATOR, WORD, 0, 0, allocators },
	{ "sample", "sample_ns", TCA_DTM_SAMPLE, TIME, SECOND / 1000, 60 * SECOND, NULL },
	{ "shift-up", "shift_up", TCA_DTM_SHIFT_UP, SHIFT, 0, 16, NULL },
	{ "shift-down", "shift_down", TCA_DTM_SHIFT_DOWN, SHIFT, 0, 16, NULL },
	{ "margin", "margin", TCA_DTM_MARGIN, SHARE, 0, DTM_MAX_SLOTS, NULL },
	{ "corridor", "corridor", TCA_DTM_CORRIDOR, SHARE, 0, DTM_MAX_SLOTS, NULL },
	{ "rounding", "rounding", TCA_DTM_ROUNDING, WORD, 0, 0, roundings },
	{ "count", "count", TCA_DTM_COUNT, WORD, 0, 0, counts },
	{ "hold-on-loss", "hold_on_loss_ns", TCA_DTM_HOLD_ON_LOSS, TIME, 0, 60 * SECOND, NULL },
	{ "estimate", "estimate_bit", TCA_DTM_ESTIMATE, RATE, 0, INT64_C(1) << 40, NULL },
	{ "high", "high", TCA_DTM_HIGH, NUMBER, 1, UINT32_MAX, NULL },
	{ "low", "low", TCA_DTM_LOW, NUMBER, 0, UINT32_MAX, NULL },
	{ "rise", "rise_ns", TCA_DTM_RISE, TIME, 0, 60 * SECOND, NULL },
	{ "fall", "fall_ns", TCA_DTM_FALL, TIME, 0, 60 * SECOND, NULL },
	{ "step", "step", TCA_DTM_STEP, NUMBER, 1, DTM_MAX_SLOTS, NULL },
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static const struct unit {
	const char *name;
	int64_t scale;
} time_units[] = {
	{ "s", SECOND }, { "ms", SECOND / 1000 }, { "us", SECOND / 1000000 }, { "ns", 1 },
}, rate_units[] = {
	{ "Gbit", 1000000000 }, { "Mbit", 1000000 }, { "kbit", 1000 }, { "bit", 1 },
};

static void explain(void)
{
	fputs("Usage: ... dtm [ slots N ] [ limit PACKETS ] [ limit-bytes BYTES ]\n"
	      "               [ overhead BYTES ] [ framed | unframed ] [ min N ] [ max N ] [ change TIME ]\n"
	      "               [ signalling TIME ] [ pool SLOTS ] [ owned N ] [ allocator KIND ]\n"
	      "KIND: static\n"
	      "    | rate [ sample TIME ] [ shift N | shift-up N shift-down N ] [ margin SLOTS ]\n"
	      "           [ corridor SLOTS ] [ rounding { up | nearest | down } ]\n"
	      "           [ count { arrivals | accepted } ] [ hold-on-loss TIME ] [ estimate RATE ]\n"
	      "    | buffer [ high BYTES ] [ low BYTES ] [ rise TIME ] [ fall TIME ] [ step N ]\n"
	      "    | hysteresis levels SLOTS:UP:DOWN,SLOTS:UP:DOWN,...   (bytes of backlog)\n"
	      "    | trace steps AFTER:SLOTS,AFTER:SLOTS,...             (times between steps)\n"
	      "A slot is 512 kbit/s. TIME: 100ms, 1.5s, 125us, 7ns. RATE: 5Mbit, 512kbit, 100bit.\n"
	      "tc-dtm(8) explains each.\n", stderr);
}

/* Reading: each returns false for what is no such thing, without saying so */

static bool read_number(const char *text, int64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 0);
	return *text && !*end && !errno;
}

/* A decimal number with one of some units; what is finer than the last is rounded. */
static bool read_quantity(const char *text, const struct unit *units, size_t n, int64_t *value)
{
	char *end;
	double number = strtod(text, &end);

	for (size_t i = 0; end != text && i < n; i++) {
		if (strcmp(end, units[i].name))
			continue;
		if (!(number >= 0 && number * units[i].scale < 1e15))
			return false;
		*value = number * units[i].scale + 0.5;
		return true;
	}
	return false;
}

static bool read_time(const char *text, int64_t *ns)
{
	return read_quantity(text, time_units, 4, ns);
}

static bool read_value(const struct option *o, const char *text, int64_t *value)
{
	char *end;
	double slots;

	switch (o->kind) {
	case TIME:
		return read_time(text, value);
	case RATE:
		return read_quantity(text, rate_units, 4, value);
	case SHARE:
		slots = strtod(text, &end);
		*value = slots * 1000 + 0.5;
		return *text && !*end && slots >= 0 && slots <= o->max;
	case WORD:
		for (*value = 0; o->words[*value]; ++*value)
			if (!strcmp(text, o->words[*value]))
				return true;
		return false;
	default:
		return read_number(text, value);
	}
}

/* In the largest unit in which it is a whole number. */
static const char *show_quantity(const struct unit *units, size_t n, uint64_t value)
{
	static char text[32];
	size_t i = 0;

	while (i + 1 < n && value % units[i].scale)
		i++;
	if (!value)
		i = units == rate_units ? n - 1 : 0;
	snprintf(text, sizeof(text), "%llu%s", (unsigned long long)(value / units[i].scale),
		 units[i].name);
	return text;
}

static void complain(const struct option *o, const char *name, const char *text)
{
	fprintf(stderr, "dtm: \"%s\" must be ", name);
	if (o->kind == WORD) {
		for (int i = 0; o->words[i]; i++)
			fprintf(stderr, "%s%s", i ? " | " : "", o->words[i]);
	} else if (o->kind == TIME) {
		fprintf(stderr, "%s..", show_quantity(time_units, 4, o->min));
		fprintf(stderr, "%s", show_quantity(time_units, 4, o->max));
	} else if (o->kind == RATE) {
		fprintf(stderr, "a rate of at most %lldbit", (long long)o->max);
	} else {
		fprintf(stderr, "%lld..%lld", (long long)o->min, (long long)o->max);
	}
	fprintf(stderr, ", got \"%s\"\n", text);
}

static void add_value(struct nlmsghdr *n, const struct option *o, int64_t value)
{
	uint8_t byte = value;
	uint32_t word = value;

	if (o->kind == WORD || o->kind == SHIFT)
		addattr_l(n, MESSAGE_BYTES, o->attribute, &byte, sizeof(byte));
	else if (o->kind == TIME || o->kind == RATE)
		addattr_l(n, MESSAGE_BYTES, o->attribute, &value, sizeof(value));
	else
		addattr_l(n, MESSAGE_BYTES, o->attribute, &word, sizeof(word));
}

static bool parse_value(struct nlmsghdr *n, const char *name, const struct option *o,
			const char *text)
{
	bool ranged = o->kind != WORD && o->kind != SHARE;
	int64_t value;

	if (!read_value(o, text, &value) || (ranged && (value < o->min || value > o->max))) {
		complain(o, name, text);
		return false;
	}
	add_value(n, o, value);
	return true;
}

/* Colon-separated fields of one item of a list; false if they are not as many numbers. */
static bool split(char *item, char **fields, int n)
{
	for (int i = 0; i < n; i++) {
		fields[i] = item;
		item = strchr(item, ':');
		if (!item != (i + 1 == n))
			return false;
		if (item)
			*item++ = '\0';
	}
	return true;
}

static bool fits(const char *text, int64_t *value)
{
	return read_number(text, value) && *value >= 0 && *value <= UINT32_MAX;
}

static bool parse_levels(struct nlmsghdr *n, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item, *field[3];
	struct tc_dtm_level levels[DTM_MAX_LEVELS];
	int64_t slots, up, down;
	int count = 0;

	while ((item = strsep(&rest, ","))) {
		if (count == DTM_MAX_LEVELS || !split(item, field, 3) || !fits(field[0], &slots) ||
		    !fits(field[1], &up) || !fits(field[2], &down))
			goto bad;
		levels[count++] = (struct tc_dtm_level) { slots, up, down };
	}
	free(copy);
	addattr_l(n, MESSAGE_BYTES, TCA_DTM_LEVELS, levels, count * sizeof(levels[0]));
	return true;
bad:
	fprintf(stderr, "dtm: \"levels\" must be 2..%d of SLOTS:UP:DOWN, got \"%s\"\n",
		DTM_MAX_LEVELS, text);
	free(copy);
	return false;
}

static bool parse_steps(struct nlmsghdr *n, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item, *field[2];
	struct tc_dtm_step steps[DTM_MAX_STEPS];
	int64_t after, slots;
	int count = 0;

	while ((item = strsep(&rest, ","))) {
		if (count == DTM_MAX_STEPS || !split(item, field, 2) ||
		    !read_time(field[0], &after) || after < 0 || after % 1000 ||
		    after / 1000 > UINT32_MAX || !fits(field[1], &slots))
			goto bad;
		steps[count++] = (struct tc_dtm_step) { after / 1000, slots };
	}
	free(copy);
	addattr_l(n, MESSAGE_BYTES, TCA_DTM_TRACE, steps, count * sizeof(steps[0]));
	return true;
bad:
	fprintf(stderr, "dtm: \"steps\" must be 1..%d of AFTER:SLOTS, AFTER whole us, got \"%s\"\n",
		DTM_MAX_STEPS, text);
	free(copy);
	return false;
}

static const struct option *find_option(const char *name)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (!strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

/* One option and its value; false if either is wrong, having said so. */
static bool parse_pair(struct nlmsghdr *n, const char *name, const char *text)
{
	if (!strcmp(name, "levels"))
		return parse_levels(n, text);
	if (!strcmp(name, "steps"))
		return parse_steps(n, text);
	if (!strcmp(name, "shift"))
		return parse_value(n, name, find_option("shift-up"), text) &&
		       parse_value(n, name, find_option("shift-down"), text);
	return parse_value(n, name, find_option(name), text);
}

static bool is_known(const char *name)
{
	return find_option(name) || !strcmp(name, "levels") || !strcmp(name, "steps") ||
	       !strcmp(name, "shift");
}

static int dtm_parse_opt(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			 const char *dev)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_BYTES, TCA_OPTIONS);
	bool good = true;

	(void)qu;
	(void)dev;
	for (; argc > 0; argc--, argv++) {
		uint8_t framed = !strcmp(*argv, "framed");

		if (!strcmp(*argv, "help")) {
			explain();
			return -1;
		}
		if (framed || !strcmp(*argv, "unframed")) {
			addattr_l(n, MESSAGE_BYTES, TCA_DTM_FRAMED, &framed, sizeof(framed));
		} else if (!is_known(*argv)) {
			fprintf(stderr,
				"dtm: what is \"%s\"? `tc qdisc add dtm help` lists options\n",
				*argv);
			good = false;
		} else if (argc == 1) {
			fprintf(stderr, "dtm: \"%s\" needs a value\n", *argv);
			good = false;
		} else {
			good &= parse_pair(n, argv[0], argv[1]);
			argc--;
			argv++;
		}
	}
	addattr_nest_end(n, nest);
	return good ? 0 : -1;
}

/* Printing */

static uint64_t number(const struct rtattr *attr)
{
	uint64_t value = 0;	/* little-endian hosts only, as x86 and arm64 are */
	size_t size = RTA_PAYLOAD(attr);

	memcpy(&value, RTA_DATA(attr), size < sizeof(value) ? size : sizeof(value));
	return value;
}

static void print_words(const char *name, const char *text)
{
	char pair[64];

	snprintf(pair, sizeof(pair), "%s %s ", name, text);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", pair);
}

static void print_option(const struct option *o, const struct rtattr *attr)
{
	uint64_t value = number(attr);
	char text[32];

	if (o->kind == WORD) {
		const char *word = value < 5 ? o->words[value] : "?";

		print_words(o->name, word);
		print_color_string(PRINT_JSON, COLOR_NONE, o->json, NULL, word);
	} else if (o->kind == SHARE) {
		/* Thousandths of up to 8192 have seven digits; tc's own floats have six. */
		snprintf(text, sizeof(text), "%.7g", value / 1000.0);
		print_words(o->name, text);
		if (is_json_context()) {
			jsonw_name(get_json_writer(), o->json);
			jsonw_printf(get_json_writer(), "%s", text);
		}
	} else if (o->kind == TIME || o->kind == RATE) {
		print_words(o->name, show_quantity(o->kind == TIME ? time_units : rate_units, 4,
						   value));
		print_color_u64(PRINT_JSON, COLOR_NONE, o->json, NULL, value);
	} else {
		int64_t signed_value = o->min < 0 ? (int32_t)value : (int64_t)value;

		snprintf(text, sizeof(text), "%lld", (long long)signed_value);
		print_words(o->name, text);
		print_color_s64(PRINT_JSON, COLOR_NONE, o->json, NULL, signed_value);
	}
}

static void print_field(const char *name, uint64_t value)
{
	print_color_u64(PRINT_JSON, COLOR_NONE, name, NULL, value);
}

static void print_levels(const struct rtattr *attr)
{
	const struct tc_dtm_level *level = RTA_DATA(attr);
	char text[48];

	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "levels ");
	open_json_array(PRINT_JSON, "levels");
	for (size_t i = 0; i < RTA_PAYLOAD(attr) / sizeof(*level); i++, level++) {
		snprintf(text, sizeof(text), "%s%u:%u:%u", i ? "," : "", level->slots,
			 level->up_bytes, level->down_bytes);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
		open_json_object(NULL);
		print_field("slots", level->slots);
		print_field("up", level->up_bytes);
		print_field("down", level->down_bytes);
		close_json_object();
	}
	close_json_array(PRINT_JSON, NULL);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", " ");
}

static void print_steps(const struct rtattr *attr)
{
	const struct tc_dtm_step *step = RTA_DATA(attr);
	char text[48];

	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "steps ");
	open_json_array(PRINT_JSON, "steps");
	for (size_t i = 0; i < RTA_PAYLOAD(attr) / sizeof(*step); i++, step++) {
		uint64_t after_ns = step->after_us * UINT64_C(1000);

		snprintf(text, sizeof(text), "%s%s:%u", i ? "," : "",
			 show_quantity(time_units, 4, after_ns), step->slots);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
		open_json_object(NULL);
		print_field("after_ns", after_ns);
		print_field("slots", step->slots);
		close_json_object();
	}
	close_json_array(PRINT_JSON, NULL);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", " ");
}

static int dtm_print_opt(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_DTM_MAX + 1];

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_rtattr(tb, TCA_DTM_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (tb[options[i].attribute])
			print_option(&options[i], tb[options[i].attribute]);
	if (tb[TCA_DTM_FRAMED]) {
		bool framed = number(tb[TCA_DTM_FRAMED]);

		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ",
				   framed ? "framed" : "unframed");
		print_color_bool(PRINT_JSON, COLOR_NONE, "framed", NULL, framed);
	}
	if (tb[TCA_DTM_LEVELS])
		print_levels(tb[TCA_DTM_LEVELS]);
	if (tb[TCA_DTM_TRACE])
		print_steps(tb[TCA_DTM_TRACE]);
	return 0;
}

static int dtm_print_xstats(struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_dtm_xstats st = { 0 };
	size_t size;
	char text[512];

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	/* A kernel with more or fewer members than we know: what both know is in its place. */
	size = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), size < sizeof(st) ? size : sizeof(st));
	snprintf(text, sizeof(text),
		 "  slots %u target %u borrowed %u pool-free %u estimate %llubit corridor %llu..%llubit\n"
		 "  samples %llu grows %llu shrinks %llu denied %llu reclaimed %llu\n"
		 "  slot-seconds %llu.%09llu age %lluns last-change %lluns peak %ub %up",
		 st.slots, st.target, st.borrowed, st.pool_free, st.estimate, st.lower, st.upper,
		 st.samples, st.grows, st.shrinks, st.denied, st.reclaimed, st.slot_seconds,
		 st.slot_ns, st.age_ns, st.last_change_ns, st.peak_bytes, st.peak_packets);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
	print_field("slots", st.slots);
	print_field("target", st.target);
	print_field("borrowed", st.borrowed);
	print_field("pool_free", st.pool_free);
	print_field("estimate_bit", st.estimate);
	print_field("lower_bit", st.lower);
	print_field("upper_bit", st.upper);
	print_field("samples", st.samples);
	print_field("grows", st.grows);
	print_field("shrinks", st.shrinks);
	print_field("denied", st.denied);
	print_field("reclaimed", st.reclaimed);
	print_field("slot_seconds", st.slot_seconds);
	print_field("slot_ns", st.slot_ns);
	print_field("age_ns", st.age_ns);
	print_field("last_change_ns", st.last_change_ns);
	print_field("peak_packets", st.peak_packets);
	print_field("peak_bytes", st.peak_bytes);
	return 0;
}

struct qdisc_util dtm_qdisc_util = {
	.id		= "dtm",
	.parse_qopt	= dtm_parse_opt,
	.print_qopt	= dtm_print_opt,
	.print_xstats	= dtm_print_xstats,
};
