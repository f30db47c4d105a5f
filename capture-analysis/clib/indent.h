/* SPDX-License-Identifier: GPL-2.0-only */
/* Indents JSON; see indented_json.py. */
#ifndef CAPTURE_ANALYSIS_INDENT_H
#define CAPTURE_ANALYSIS_INDENT_H

#include <stddef.h>

#include "parser.h"

/*
 * Writes a valid document without white space between its tokens, but behind colons, with a line for
 * each member and element, each level one blank further to the right. Returns the length; writes
 * nothing if `to` is NULL.
 */
CA_API size_t ca_indent(const char *json, size_t length, char *to);

#endif
