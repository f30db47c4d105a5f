/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lower bound: walks from record to record of a classic pcap file and touches nothing else.
 * Prints the number of records and the nanoseconds, reading included.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_HEADER_BYTES 24
#define RECORD_HEADER_BYTES 16

static uint8_t buffer[1 << 20];

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	size_t have = 0, at = FILE_HEADER_BYTES, records = 0;
	int64_t began_ns = now_ns();
	ssize_t got;
	int file;

	if (argc != 2 || (file = open(argv[1], O_RDONLY)) < 0)
		return 2;
	while ((got = read(file, buffer + have, sizeof(buffer) - have)) > 0) {
		have += (size_t)got;
		while (at + RECORD_HEADER_BYTES <= have) {
			uint32_t kept;

			memcpy(&kept, buffer + at + 8, sizeof(kept));
			if (at + RECORD_HEADER_BYTES + kept > have)
				break;
			at += RECORD_HEADER_BYTES + kept;
			records++;
		}
		memmove(buffer, buffer + at, have - at);
		have -= at;
		at = 0;
	}
	printf("%zu %lld\n", records, (long long)(now_ns() - began_ns));
	return 0;
}
