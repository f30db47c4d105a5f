// SPDX-License-Identifier: GPL-2.0-only
/*
 * Feeds a fuzz target with random inputs, the same in every run, without a fuzzer: for valgrind.
 *
 *	TARGET INPUTS
 */
#include "../fuzz/fuzz.h"

#define INPUT_BYTES_MAX 1200

/* Xorshift64 (Marsaglia, 2003). */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int main(int argc, char **argv)
{
	uint8_t bytes[INPUT_BYTES_MAX];
	uint64_t state = 1;

	if (argc != 2) {
		fprintf(stderr, "usage: %s INPUTS\n", argv[0]);
		return EXIT_FAILURE;
	}
	for (long inputs = strtol(argv[1], NULL, 10); inputs > 0; inputs--) {
		size_t length = next(&state) % (INPUT_BYTES_MAX + 1);

		for (size_t k = 0; k < length; k++)
			bytes[k] = (uint8_t)next(&state);
		LLVMFuzzerTestOneInput(bytes, length);
	}
	return EXIT_SUCCESS;
}
