// SPDX-License-Identifier: GPL-2.0-only
#include <stdbool.h>

#include "indent.h"

struct text {
	char *to;	/* NULL: only the length is wanted */
	size_t length;
	size_t depth;
};

static void put(struct text *text, char c)
{
	if (text->to)
		text->to[text->length] = c;
	text->length++;
}

static void put_line(struct text *text)
{
	put(text, '\n');
	for (size_t blank = 0; blank < text->depth; blank++)
		put(text, ' ');
}

static bool opens(char c)
{
	return c == '{' || c == '[';
}

static bool closes(char c)
{
	return c == '}' || c == ']';
}

size_t ca_indent(const char *json, size_t length, char *to)
{
	struct text text = { .to = to };
	bool inside = false;	/* a string */

	for (size_t at = 0; at < length; at++) {
		char c = json[at], before = at ? json[at - 1] : ' ';

		if (inside) {
			put(&text, c);
			inside = c != '"';
			if (c == '\\' && at + 1 < length)
				put(&text, json[++at]);
			continue;
		}
		if (closes(c) && !opens(before)) {
			text.depth -= text.depth > 0;
			put_line(&text);
		} else if (opens(before) && !closes(c)) {
			text.depth++;
			put_line(&text);
		}
		put(&text, c);
		if (c == ',')
			put_line(&text);
		inside = c == '"';
	}
	return text.length;
}
