// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interfaces of a pcapng section: link type, and the clock that packet blocks count by.
 *
 * Times are integers throughout: ticks of 10^-n or 2^-n seconds for any n become ns, truncated.
 */
#include <stdlib.h>

#include "pcapng.h"

#define INTERFACE_OPTIONS 16	/* offset in the block */
#define PADDING 4		/* sizes of options are multiples of this */

#define OPTION_HEADER_BYTES 4
#define OPTION_END 0
#define OPTION_RESOLUTION 9
#define OPTION_OFFSET 14
#define RESOLUTION_BINARY 0x80	/* powers of two instead of ten; the exponent is in the bits below */

#define NS_PER_SECOND INT64_C(1000000000)
#define NS_DECIMALS 9
#define TICKS_DECIMALS 19	/* 10^19 is the largest power of ten in 64 bits */
#define DEFAULT_RESOLUTION 6	/* microseconds */

/* Limits the descriptions of interfaces to 32 MiB. */
#ifndef INTERFACES_MAX
#define INTERFACES_MAX (UINT32_C(1) << 20)
#endif
#define INTERFACES_FIRST 8

static uint64_t power_of_ten(unsigned int exponent)
{
	uint64_t power = 1;

	while (exponent--)
		power *= 10;
	return power;
}

static void set_resolution(struct interface *interface, uint8_t resolution)
{
	unsigned int exponent = resolution & (RESOLUTION_BINARY - 1u);

	interface->multiplier = 1;
	interface->divisor = 1;
	interface->shift = 0;
	if (resolution & RESOLUTION_BINARY) {
		interface->multiplier = NS_PER_SECOND;
		interface->shift = (uint8_t)exponent;
	} else if (exponent <= NS_DECIMALS) {
		interface->multiplier = power_of_ten(NS_DECIMALS - exponent);
	} else if (exponent <= NS_DECIMALS + TICKS_DECIMALS) {
		interface->divisor = power_of_ten(exponent - NS_DECIMALS);
	} else {
		interface->multiplier = 0;	/* 2^64 such ticks are less than a nanosecond */
	}
}

/* Converts ticks to ns since the epoch; false if the time does not fit. */
bool interface_time(const struct interface *interface, uint64_t ticks, int64_t *time_ns)
{
	ca_u128 since = (ca_u128)ticks * interface->multiplier >> interface->shift;

	if (interface->divisor > 1)
		since = (uint64_t)since / interface->divisor;

	ca_s128 ns = (ca_s128)since + (ca_s128)interface->offset_s * NS_PER_SECOND;

	*time_ns = (int64_t)ns;
	return ns >= INT64_MIN && ns <= INT64_MAX;
}

static void read_interface_options(struct view options, bool big, struct interface *interface)
{
	while (view_has(options, OPTION_HEADER_BYTES)) {
		uint16_t code = view_u16(options, 0, big), length = view_u16(options, 2, big);
		struct view value = view_after(options, OPTION_HEADER_BYTES);

		if (code == OPTION_END || !view_has(value, length))
			return;
		if (code == OPTION_RESOLUTION && length == sizeof(uint8_t))
			set_resolution(interface, view_u8(value, 0));
		if (code == OPTION_OFFSET && length == sizeof(int64_t))
			interface->offset_s = (int64_t)view_u64(value, 0, big);
		options = view_after(value, (length + PADDING - 1u) / PADDING * PADDING);
	}
}

/* Records an interface; false if there are too many, or without memory. */
bool interfaces_add(struct interfaces *interfaces, struct view block, bool big)
{
	uint16_t link_type = view_u16(block, 8, big);
	struct interface *interface;

	if (interfaces->count == interfaces->capacity) {
		uint32_t capacity = interfaces->capacity ? 2 * interfaces->capacity : INTERFACES_FIRST;

		if (capacity > INTERFACES_MAX)
			return false;
		interface = realloc(interfaces->rows, capacity * sizeof(*interface));
		if (!interface)
			return false;
		interfaces->rows = interface;
		interfaces->capacity = capacity;
	}
	interface = &interfaces->rows[interfaces->count++];
	*interface = (struct interface){ .link_type = link_type };
	set_resolution(interface, DEFAULT_RESOLUTION);
	read_interface_options(view_after(block, INTERFACE_OPTIONS), big, interface);
	interfaces->link_types[link_type / LINK_TYPES_IN_WORD] |=
		UINT64_C(1) << link_type % LINK_TYPES_IN_WORD;
	return true;
}

