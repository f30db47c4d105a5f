/* SPDX-License-Identifier: GPL-2.0-only */
/* Make a system call of the host, from a module of user-mode Linux. */
static long host(long number, long a, long b, long c, long d)
{
	register long fourth asm("r10") = d;
	long result;

	asm volatile("syscall" : "=a"(result)
		     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
		     : "rcx", "r11", "memory");
	return result;
}
