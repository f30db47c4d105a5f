/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_WLAN_H
#define CAPTURE_ANALYSIS_WLAN_H

#include "frame.h"

enum fate wlan_find_llc(struct view frame, size_t *offset);
enum fate radiotap_find_llc(struct view frame, size_t *offset);

#endif
