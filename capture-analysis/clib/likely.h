/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_LIKELY_H
#define CAPTURE_ANALYSIS_LIKELY_H

/* Whether bytes behind damage are likely to be a record, so that reading can go on there. */
enum likely {
	UNLIKELY,
	LIKELY,
	UNDECIDED,	/* more bytes of the file are needed to tell */
};

#endif
