/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_TCP_H
#define CAPTURE_ANALYSIS_TCP_H

#include "frame.h"

enum fate tcp_read(struct view tcp, int64_t bytes, struct segment *segment);

#endif
