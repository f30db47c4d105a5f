/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decimal numbers with units, such as 1.5s, read and shown exactly: a value is a whole number of
 * the smallest unit, and a text that is not is no quantity. What is shown is read as the same.
 */
#ifndef QUANTITY_H
#define QUANTITY_H

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* 10^9: ns of a second. */
#define MOST_DECIMALS 1000000000

/* Tables of units go from the largest to the smallest and end with zeros. */
struct unit {
	const char *name;
	int64_t scale;		/* a power of ten */
};

static const struct unit counts[] = { { "", 1 }, { 0 } };
static const struct unit thousandths[] = { { "", 1000 }, { 0 } };
static const struct unit rates[] = {
	{ "Gbit", 1000000000 }, { "Mbit", 1000000 }, { "kbit", 1000 }, { "bit", 1 }, { 0 },
};

static const struct unit times[] = {
	{ "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }, { 0 },
};

/* A decimal number with one of some units, in the smallest; false if it is not exactly that. */
static inline bool read_quantity(const char *text, const struct unit *units, int64_t *value)
{
	bool negative = *text == '-', has_point = false;
	int64_t number = 0, decimals = 1;

	text += negative;
	if (!isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text) || (*text == '.' && !has_point); text++) {
		if (*text == '.') {
			has_point = true;
			continue;
		}
		if (number > INT64_MAX / 10 - 1 || decimals >= MOST_DECIMALS)
			return false;
		number = 10 * number + (*text - '0');
		decimals *= has_point ? 10 : 1;
	}
	while (units->name && strcasecmp(text, units->name))
		units++;
	if (!units->name)
		return false;
	/* Both are powers of ten: one divides the other. */
	if (decimals > units->scale) {
		if (number % (decimals / units->scale))
			return false;
		number /= decimals / units->scale;
	} else if (__builtin_mul_overflow(number, units->scale / decimals, &number)) {
		return false;
	}
	*value = negative ? -number : number;
	return true;
}

struct text {
	char s[32];
};

/* In the largest unit in which it is whole, 0 in s or bit; thousandths as decimals. */
static inline struct text show_quantity(const struct unit *units, int64_t value)
{
	struct text text;
	int n, rest;

	while (units[1].name && (value ? value % units->scale != 0 : units != times))
		units++;
	rest = value % units->scale;
	n = snprintf(text.s, sizeof(text.s), "%" PRId64, value / units->scale);
	if (rest) {
		n += snprintf(text.s + n, sizeof(text.s) - n, ".%03d", rest);
		while (text.s[n - 1] == '0')
			n--;
	}
	snprintf(text.s + n, sizeof(text.s) - n, "%s", units->name);
	return text;
}

#endif /* QUANTITY_H */
