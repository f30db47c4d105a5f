// SPDX-License-Identifier: GPL-2.0-only
/*
 * fork_server - load a program once, and run it for each request
 *
 *   LD_PRELOAD=fork_server.so FORK_SERVER=PROGRAM FORK_SERVER_INPUT=FD PROGRAM ...
 *
 * Two thirds of the life of a short program are its dynamic linking, which takes 150 system calls of
 * `ip`, each of them slow under user-mode Linux. This library steps in when all of that is over, in
 * place of main(). A request, a packet on standard input, is the path of a network namespace: a child
 * enters it and runs main() with FD as its standard input. The answer is its status, as of wait(2).
 *
 * Programs that start PROGRAM, such as env, run unchanged.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int main_function(int argc, char **argv, char **environment);
typedef int start_function(main_function *main, int argc, char **argv, void (*init)(void),
			   void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

static main_function *program;

static int enter(const char *namespace)
{
	int there = open(namespace, O_RDONLY | O_CLOEXEC);

	return there < 0 || setns(there, CLONE_NEWNET) < 0 || close(there) < 0 ? -1 : 0;
}

/* Takes the place of main(). */
static int serve(int argc, char **argv, char **environment)
{
	int input = atoi(getenv("FORK_SERVER_INPUT"));
	char namespace[4096];

	for (;;) {
		ssize_t n = read(STDIN_FILENO, namespace, sizeof(namespace) - 1);
		int status = -1;
		pid_t child;

		if (n <= 0)
			return EXIT_SUCCESS;
		namespace[n] = '\0';
		child = fork();
		if (!child) {
			if (enter(namespace) < 0 || dup2(input, STDIN_FILENO) < 0)
				_exit(EXIT_FAILURE);
			status = program(argc, argv, environment);
			fflush(NULL);
			_exit(status); /* skips the libraries' destructors, a page fault each */
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 ||
		    write(STDIN_FILENO, &status, sizeof(status)) < 0)
			return EXIT_FAILURE;
	}
}

/* The C library's, which calls main(). */
int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
	const char *name = getenv("FORK_SERVER");

	if (name && !strcmp(name, program_invocation_short_name)) {
		program = main;
		main = serve;
	}
	return start(main, argc, argv, init, fini, rtld_fini, stack_end);
}
