/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_DATAGRAM_H
#define CAPTURE_ANALYSIS_DATAGRAM_H

#include "frame.h"

enum fate datagram_read(struct view data, int64_t bytes, bool later, struct segment *segment);

#endif
