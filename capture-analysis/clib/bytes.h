/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes of a capture, and the one place where bounds are checked.
 *
 * A view is a run of bytes. Reading beyond its end touches no memory and gives 0, and a part of a
 * view never reaches beyond it: no length in a hostile file, and no mistake in the code that reads
 * it, leads to foreign memory. Callers still ask view_has() first, because missing bytes mean
 * something (the capture kept too little, the record is not whole); the compiler then drops the
 * check inside.
 */
#ifndef CAPTURE_ANALYSIS_BYTES_H
#define CAPTURE_ANALYSIS_BYTES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "columns are little-endian; elsewhere the package works without this library");

__extension__ typedef __int128 ca_s128;
__extension__ typedef unsigned __int128 ca_u128;

struct view {
	const uint8_t *bytes;
	size_t length;
};

static inline bool view_has(struct view view, size_t count)
{
	return view.length >= count;
}

/* The bytes behind the first count bytes; an empty view if there are fewer. */
static inline struct view view_after(struct view view, size_t count)
{
	if (!view_has(view, count))
		count = view.length;
	return (struct view){ view.bytes + count, view.length - count };
}

/* The first count bytes, or all bytes if there are fewer. */
static inline struct view view_first(struct view view, size_t count)
{
	if (view_has(view, count))
		view.length = count;
	return view;
}

/* A pointer to count bytes at offset; NULL if the view ends before them. */
static inline const uint8_t *view_at(struct view view, size_t offset, size_t count)
{
	if (view.length < count || view.length - count < offset)
		return NULL;
	return view.bytes + offset;
}

static inline uint8_t view_u8(struct view view, size_t offset)
{
	const uint8_t *at = view_at(view, offset, 1);

	return at ? *at : 0;
}

static inline uint16_t view_be16(struct view view, size_t offset)
{
	const uint8_t *at = view_at(view, offset, 2);

	if (!at)
		return 0;
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint16_t view_le16(struct view view, size_t offset)
{
	const uint8_t *at = view_at(view, offset, 2);

	if (!at)
		return 0;
	return (uint16_t)(at[1] << 8 | at[0]);
}

static inline uint32_t view_be32(struct view view, size_t offset)
{
	const uint8_t *at = view_at(view, offset, 4);

	if (!at)
		return 0;
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint32_t view_le32(struct view view, size_t offset)
{
	const uint8_t *at = view_at(view, offset, 4);

	if (!at)
		return 0;
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static inline uint64_t view_le64(struct view view, size_t offset)
{
	return (uint64_t)view_le32(view, offset + 4) << 32 | view_le32(view, offset);
}

/* The next three read a number in the byte order of the capture file. */
static inline uint16_t view_u16(struct view view, size_t offset, bool big_endian)
{
	return big_endian ? view_be16(view, offset) : view_le16(view, offset);
}

static inline uint32_t view_u32(struct view view, size_t offset, bool big_endian)
{
	return big_endian ? view_be32(view, offset) : view_le32(view, offset);
}

static inline uint64_t view_u64(struct view view, size_t offset, bool big_endian)
{
	uint64_t first = view_u32(view, offset, big_endian);
	uint64_t second = view_u32(view, offset + 4, big_endian);

	return big_endian ? first << 32 | second : second << 32 | first;
}

#endif
