// SPDX-License-Identifier: GPL-2.0-only
/*
 * dtm events [--out FILE] - write down each reallocation of the channels in this network namespace
 *
 * One row of CSV per trace event dtm:dtm_reallocation, under a preamble that says what the numbers
 * are. The events go to a buffer of their own (an instance of tracefs), which exists before
 * "listening on" is printed, on standard error: what happens after that is written down. It ends
 * with SIGINT or SIGTERM. Events that found no room there are counted: then the status is 1.
 *
 * A terminal or a pipe gets rows soon after they happen. A file gets them at the end: until then
 * this program does nothing, because in virtual time each system call costs some.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dtm_genl.h"

#define TRACING		"/sys/kernel/tracing"
#define INSTANCES	TRACING "/instances/"
#define EVENT		"dtm_reallocation: "
/* For each processor: room for some 98000 events. */
#define BUFFER_KIB	"8192"
/* Time between looks for new rows. */
#define LOOK_NS		100000000

static const char *const causes[] = {
	[TC_DTM_CAUSE_ALLOCATOR]	= "allocator",
	[TC_DTM_CAUSE_DENIED]		= "denied",
	[TC_DTM_CAUSE_RECLAIMED]	= "reclaimed",
	[TC_DTM_CAUSE_OPERATOR]		= "operator",
	[TC_DTM_CAUSE_START]		= "start",
	[TC_DTM_CAUSE_GRANTED]		= "granted",
	[TC_DTM_CAUSE_LEFT]		= "left",
};

#define N_CAUSES	(sizeof(causes) / sizeof(causes[0]))

static char instance[64];	/* its folder */

static void path_in_instance(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", instance, name);
}

static void set(const char *name, const char *value)
{
	char path[PATH_MAX];
	int fd;

	path_in_instance(path, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		die(path);
	close(fd);
}

/* Mount tracefs, for this program alone, unless it is there and not read-only. */
static void find_tracing(void)
{
	if (!access(INSTANCES, W_OK))
		return;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tracefs", TRACING, "tracefs", 0, NULL))
		die(TRACING);
}

/*
 * Remove the instances of programs that were killed. The kernel refuses while one is being read,
 * which a program of another PID namespace may do.
 */
static void remove_abandoned(void)
{
	glob_t found;

	if (!glob(INSTANCES "dtm-*", 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++) {
			int pid = atoi(found.gl_pathv[i] + strlen(INSTANCES "dtm-"));

			if (kill(pid, 0) && errno == ESRCH)
				rmdir(found.gl_pathv[i]);
		}
	globfree(&found);
}

static void remove_instance(void)
{
	rmdir(instance);
}

/* Begin to record; returns the events, as lines of text. */
static FILE *begin(void)
{
	char path[PATH_MAX], filter[32];
	struct stat netns;
	int fd;

	find_tracing();
	remove_abandoned();
	snprintf(instance, sizeof(instance), INSTANCES "dtm-%d-XXXXXX", (int)getpid());
	if (!mkdtemp(instance))
		die(INSTANCES);
	atexit(remove_instance);
	if (stat("/proc/self/ns/net", &netns))
		die("/proc/self/ns/net");
	snprintf(filter, sizeof(filter), "netns == %lu", (unsigned long)netns.st_ino);
	path_in_instance(path, "trace_pipe");
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		die(path);
	set("buffer_size_kb", BUFFER_KIB);
	set("events/dtm/dtm_reallocation/filter", filter);
	set("events/dtm/dtm_reallocation/enable", "1");
	return fdopen(fd, "r");
}

static void write_row(const char *event, FILE *out)
{
	unsigned long long time_ns, estimate, bytes;
	unsigned int handle, cause, from, to, wanted;
	char dev[IF_NAMESIZE];

	/* As TP_printk() of dtm_trace.h has them. */
	if (sscanf(event,
		   "time_ns=%llu netns=%*u ifindex=%*u dev=%15s handle=%x cause=%u from=%u to=%u wanted=%u estimate=%llu bytes=%llu",
		   &time_ns, dev, &handle, &cause, &from, &to, &wanted, &estimate, &bytes) != 9) {
		errno = EPROTO;
		die(event);
	}
	fprintf(out, "%llu,%s,%x:,%s,%u,%u,%u,%llu,%llu\n", time_ns, dev, handle >> 16,
		cause < N_CAUSES ? causes[cause] : "unknown", from, to, wanted, estimate, bytes);
}

/* Write what has happened since the last call. */
static void write_rows(FILE *events, FILE *out)
{
	static char *line;
	static size_t room;

	while (getline(&line, &room, events) > 0) {
		const char *event = strstr(line, EVENT);

		if (event)
			write_row(event + strlen(EVENT), out);
	}
	if (ferror(events) && errno != EAGAIN)
		die("trace_pipe");
	clearerr(events);
	fflush(out);
}

/* Events for which the buffers of all processors had no room. */
static uint64_t count_lost(void)
{
	char path[PATH_MAX], line[80];
	uint64_t lost = 0, some;
	glob_t found;

	path_in_instance(path, "per_cpu/cpu*/stats");
	if (glob(path, 0, NULL, &found))
		die(path);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *stats = fopen(found.gl_pathv[i], "r");

		if (!stats)
			die(found.gl_pathv[i]);
		while (fgets(line, sizeof(line), stats))
			if (sscanf(line, "overrun: %" SCNu64, &some) == 1 ||
			    sscanf(line, "dropped events: %" SCNu64, &some) == 1)
				lost += some;
		fclose(stats);
	}
	globfree(&found);
	return lost;
}

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Write events until told to stop, and all that happened before. */
static void record(FILE *events, FILE *out, const sigset_t *while_waiting)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	struct stat to;
	bool at_end = !fstat(fileno(out), &to) && S_ISREG(to.st_mode);

	while (!stopped) {
		if (ppoll(NULL, 0, at_end ? NULL : &look, while_waiting) < 0 && errno != EINTR)
			die("wait");
		if (!at_end)
			write_rows(events, out);
	}
	set("events/dtm/dtm_reallocation/enable", "0");
	write_rows(events, out);
}

int events_main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop };
	sigset_t stops, before;
	FILE *out = stdout, *events;
	struct genl genl;
	uint64_t lost;

	if (argc && (argc != 2 || strcmp(argv[0], "--out"))) {
		fputs("dtm: `dtm events` takes --out FILE only; `dtm --help` explains\n", stderr);
		return 2;
	}
	if (argc) {
		out = fopen(argv[1], "w");
		if (!out)
			die(argv[1]);
	}
	genl_open(&genl);
	/* Blocked except in the wait: a signal just before the wait ends it. */
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigprocmask(SIG_BLOCK, &stops, &before);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	events = begin();
	fputs("# tool: dtm events\n"
	      "# clock: CLOCK_REALTIME, ns, of the change itself\n"
	      "# units: slots of 512 kbit/s, estimate in bit/s, backlog in bytes on the link\n"
	      "time_ns,interface,handle,cause,from,to,wanted,estimate_bit,backlog_bytes\n", out);
	fflush(out);
	fputs("listening on the trace event dtm:dtm_reallocation\n", stderr);
	record(events, out, &before);
	lost = count_lost();
	fclose(events);
	if (ferror(out) | fclose(out))
		die("output");
	if (lost)
		fprintf(stderr, "dtm: %" PRIu64 " events were lost\n", lost);
	return lost ? 1 : 0;
}
