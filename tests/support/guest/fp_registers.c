/*
 * Are a process's SSE registers its own? They are filled, something happens, and they are compared:
 * system calls, other processes and threads, signals, page faults, fork, vfork, ptrace. Prints the
 * cases that fail; exit status 1 if there is one.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGISTERS = 16, BYTES = 16, ALL = REGISTERS * BYTES, ROUNDS = 300 };

#define EACH(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) \
	what(8) what(9) what(10) what(11) what(12) what(13) what(14) what(15)
#define LOAD(n) "movdqu " #n "*16(%[in]), %%xmm" #n "\n\t"
#define STORE(n) "movdqu %%xmm" #n ", " #n "*16(%[out])\n\t"
#define ZERO(n) "pxor %%xmm" #n ", %%xmm" #n "\n\t"
#define NAMES "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
	"xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "rcx", "r11", "memory"

static int failures;

static void fill(uint8_t *in, unsigned seed)
{
	for (int i = 0; i < ALL; i++)
		in[i] = (uint8_t)(seed * 37 + i * 11 + 1);
}

/* Fill the registers, make a system call, read them again; return the call's result. */
static long call(const uint8_t *in, uint8_t *out, long nr, long a, long b, long c, long d)
{
	register long r10 asm("r10") = d;

	asm volatile(EACH(LOAD) "syscall\n\t" EACH(STORE)
		     : "+a"(nr)
		     : [in] "r"(in), [out] "r"(out), "D"(a), "S"(b), "d"(c), "r"(r10)
		     : NAMES);
	return nr;
}

/* The same with a byte written to memory in place of the call. */
static void touch(const uint8_t *in, uint8_t *out, volatile uint8_t *place)
{
	asm volatile(EACH(LOAD) "movb $1, (%[place])\n\t" EACH(STORE)
		     :
		     : [in] "r"(in), [out] "r"(out), [place] "r"(place)
		     : NAMES);
}

/* The same with a vfork whose child clears the registers. */
static void vfork_and_clear(const uint8_t *in, uint8_t *out)
{
	long nr = SYS_vfork;

	asm volatile(EACH(LOAD) "syscall\n\t"
		     "test %%rax, %%rax\n\t"
		     "jnz 1f\n\t" EACH(ZERO) "xor %%edi, %%edi\n\t"
		     "mov %[leave], %%eax\n\t"
		     "syscall\n\t"
		     "1:\n\t" EACH(STORE)
		     : "+a"(nr)
		     : [in] "r"(in), [out] "r"(out), [leave] "i"(SYS_exit)
		     : NAMES, "rdi");
	waitpid((pid_t)nr, NULL, 0);
}

static void expect(const char *name, const uint8_t *in, const uint8_t *out)
{
	if (memcmp(in, out, ALL) != 0) {
		printf("%s: other registers\n", name);
		__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
	}
}

static void clear(int number)
{
	(void)number;
	asm volatile(EACH(ZERO) : : : NAMES);
}

/* Yield and sleep with registers of one's own. */
static void beside_others(const char *name, unsigned seed)
{
	struct timespec soon = { 0, 1000 };
	uint8_t in[ALL], out[ALL];

	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(in, seed + round);
		call(in, out, SYS_sched_yield, 0, 0, 0, 0);
		expect(name, in, out);
		call(in, out, SYS_nanosleep, (long)&soon, 0, 0, 0);
		expect(name, in, out);
	}
}

static void *thread(void *seed)
{
	beside_others("threads", (unsigned)(uintptr_t)seed);
	return NULL;
}

static void status_of(const char *name, pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || status != 0) {
		printf("%s: the child failed\n", name);
		failures++;
	}
}

static void test_ptrace(void)
{
	struct user_fpregs_struct registers;
	uint8_t in[ALL], out[ALL], own[ALL], changed[ALL];
	pid_t child;
	int status;

	fill(in, 7);
	fill(own, 8);
	memcpy(changed, in, ALL);
	memset(changed + 3 * BYTES, 0x5a, BYTES);
	child = fork();
	if (child == 0) {
		failures = 0;
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		call(in, out, SYS_kill, getpid(), SIGSTOP, 0, 0);
		expect("ptrace, changed", changed, out);
		exit(failures != 0);
	}
	waitpid(child, &status, 0);
	call(own, out, SYS_ptrace, PTRACE_GETFPREGS, child, 0, (long)&registers);
	expect("ptrace, the tracer's", own, out);
	expect("ptrace, read", in, (uint8_t *)registers.xmm_space);
	memcpy(registers.xmm_space, changed, ALL);
	call(own, out, SYS_ptrace, PTRACE_SETFPREGS, child, 0, (long)&registers);
	expect("ptrace, the tracer's", own, out);
	ptrace(PTRACE_CONT, child, 0, 0);
	status_of("ptrace", child);
}

int main(void)
{
	uint8_t in[ALL], out[ALL];
	pthread_t threads[3];
	pid_t child;

	setvbuf(stdout, NULL, _IONBF, 0);
	signal(SIGUSR1, clear);
	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(in, round);
		call(in, out, SYS_getpid, 0, 0, 0, 0);
		expect("a call", in, out);
		call(in, out, SYS_kill, getpid(), SIGUSR1, 0, 0);
		expect("a signal", in, out);
		touch(in, out, mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		expect("a page fault", in, out);
	}
	for (unsigned round = 0; round < 10; round++) {
		fill(in, round);
		child = (pid_t)call(in, out, SYS_fork, 0, 0, 0, 0);
		expect(child ? "fork, parent" : "fork, child", in, out);
		if (child == 0) {
			beside_others("processes", 1000);
			_exit(failures != 0);
		}
		if (round == 0)
			beside_others("processes", 2000);
		status_of("fork", child);
		vfork_and_clear(in, out);
		expect("vfork", in, out);
	}
	for (uintptr_t n = 0; n < 3; n++)
		pthread_create(&threads[n], NULL, thread, (void *)(100 * n));
	beside_others("threads", 4000);
	fill(in, 5);
	child = (pid_t)call(in, out, SYS_fork, 0, 0, 0, 0);
	expect("fork beside threads", in, out);
	if (child == 0)
		_exit(failures != 0);
	status_of("fork beside threads", child);
	for (int n = 0; n < 3; n++)
		pthread_join(threads[n], NULL);
	test_ptrace();
	puts(failures ? "failed" : "each had its own registers");
	return failures != 0;
}
