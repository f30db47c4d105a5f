// SPDX-License-Identifier: GPL-2.0-only
/*
 * dtm - pools and reallocations of DTM links
 *
 * What tc cannot say about the queueing discipline dtm: pools are no qdiscs, and events are not
 * statistics. A command is a row of commands[]; those of pools talk to the kernel's family
 * "dtm", and pass on the sentence with which the kernel refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtm_genl.h"
#include "quantity.h"

static const char usage[] =
	"usage: dtm pool add NAME slots N    make a pool of N slots for the channels of a link\n"
	"       dtm pool del NAME            remove it; it must have no channels\n"
	"       dtm pool show [-j]           the pools of this network namespace\n"
	"       dtm events [--out FILE]      a row of CSV for each reallocation, until interrupted\n"
	"\n"
	"A pool is the slots that several channels share. It belongs to this network namespace; channels\n"
	"in another name that, too (netns). Two channels of a bus of 40 slots:\n"
	"\n"
	"    dtm pool add bus slots 40\n"
	"    tc qdisc add dev eth0 root dtm slots 4 pool bus owned 20 allocator rate\n"
	"    tc qdisc add dev eth1 root dtm slots 4 pool bus allocator rate\n"
	"    dtm pool show\n"
	"\n"
	"A slot is 512 kbit/s. -j prints JSON. tc-dtm(8) has the options of channels.\n";

/* Say why the kernel refused; the exit status. */
static int report(const char *what, int error, const char *sentence)
{
	if (!error)
		return 0;
	fprintf(stderr, "dtm: %s: %s\n", what, sentence ? sentence : strerror(error));
	return 1;
}

static int complain(const char *why)
{
	fprintf(stderr, "dtm: %s; `dtm --help` explains\n", why);
	return 2;
}

/* Printing: a row of words in text, an object of an array in JSON */

static bool json;
static unsigned int rows, members;

static void begin_row(void)
{
	if (json)
		printf("%s{", rows ? "," : "");
	rows++;
	members = 0;
}

static void end_row(void)
{
	fputs(json ? "}" : "\n", stdout);
}

static void begin_member(const char *name)
{
	if (json)
		printf("%s\"%s\":", members++ ? "," : "", name);
	else
		printf("%s%s ", members++ ? " " : "", name);
}

static void print_name(const char *name, const char *value)
{
	begin_member(name);
	if (!json) {
		fputs(value, stdout);
		return;
	}
	putchar('"');
	/* Names may contain any character but blanks. */
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			printf("\\%c", *value);
		else if ((unsigned char)*value < ' ')
			printf("\\u%04x", (unsigned char)*value);
		else
			putchar(*value);
	}
	putchar('"');
}

static void print_number(const char *name, const struct nlattr *attr)
{
	begin_member(name);
	printf("%u", number(attr));
}

static void print_pool(const struct attributes *pool, void *context)
{
	(void)context;
	begin_row();
	print_name("pool", text(pool->at[DTM_A_POOL]));
	print_number("slots", pool->at[DTM_A_POOL_SLOTS]);
	print_number("used", pool->at[DTM_A_POOL_USED]);
	print_number("guaranteed", pool->at[DTM_A_POOL_GUARANTEED]);
	print_number("channels", pool->at[DTM_A_POOL_CHANNELS]);
	print_number("waiting", pool->at[DTM_A_POOL_WAITING]);
	end_row();
}

/* Commands: each gets the words behind its own, and returns the exit status */

static void no_answer(const struct attributes *found, void *context)
{
	(void)found;
	(void)context;
}

static int change_pool(const struct genl *genl, const struct genl_request *request,
		       const char *name)
{
	const char *sentence = NULL;
	int error;

	genl_send(genl, request);
	error = genl_receive(genl, no_answer, NULL, &sentence);
	return report(name, error, sentence);
}

static bool good_name(const char *name)
{
	if (strlen(name) < TC_DTM_POOL_NAME)
		return true;
	fprintf(stderr, "dtm: a pool's name has at most %d characters, got \"%s\"\n",
		TC_DTM_POOL_NAME - 1, name);
	return false;
}

static int pool_add(int argc, char **argv)
{
	struct genl_request request;
	struct genl genl;
	int64_t slots;
	uint32_t u32;

	if (argc != 3 || strcmp(argv[1], "slots"))
		return complain("`dtm pool add` needs NAME slots N");
	if (!good_name(argv[0]))
		return 2;
	if (!read_quantity(argv[2], counts, &slots) || slots < 1 || slots > TC_DTM_MAX_SLOTS) {
		fprintf(stderr, "dtm: \"slots\" must be 1..%d, got \"%s\"\n", TC_DTM_MAX_SLOTS,
			argv[2]);
		return 2;
	}
	u32 = slots;
	genl_open(&genl);
	genl_begin(&request, &genl, DTM_CMD_POOL_NEW, NLM_F_ACK);
	genl_add(&request, DTM_A_POOL, argv[0], strlen(argv[0]) + 1);
	genl_add(&request, DTM_A_POOL_SLOTS, &u32, sizeof(u32));
	return change_pool(&genl, &request, argv[0]);
}

static int pool_del(int argc, char **argv)
{
	struct genl_request request;
	struct genl genl;

	if (argc != 1)
		return complain("`dtm pool del` needs NAME");
	if (!good_name(argv[0]))
		return 2;
	genl_open(&genl);
	genl_begin(&request, &genl, DTM_CMD_POOL_DEL, NLM_F_ACK);
	genl_add(&request, DTM_A_POOL, argv[0], strlen(argv[0]) + 1);
	return change_pool(&genl, &request, argv[0]);
}

static int pool_show(int argc, char **argv)
{
	const char *sentence = NULL;
	struct genl_request request;
	struct genl genl;
	int error;

	json = argc == 1 && (!strcmp(argv[0], "-j") || !strcmp(argv[0], "--json"));
	if (argc > json)
		return complain("`show` takes -j only");
	genl_open(&genl);
	genl_begin(&request, &genl, DTM_CMD_POOL_GET, NLM_F_DUMP);
	genl_send(&genl, &request);
	if (json)
		putchar('[');
	error = genl_receive(&genl, print_pool, NULL, &sentence);
	if (json)
		puts("]");
	if (fflush(stdout))
		die("output");
	return report("dump", error, sentence);
}

static const struct {
	const char *words[2];
	int (*run)(int argc, char **argv);
} commands[] = {
	{ { "pool", "add" }, pool_add },
	{ { "pool", "del" }, pool_del },
	{ { "pool", "show" }, pool_show },
	{ { "events" }, events_main },
};

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 0;
		}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const char *const *words = commands[i].words;
		int n = words[1] ? 2 : 1;

		if (argc > n && !strcmp(argv[1], words[0]) &&
		    (n == 1 || !strcmp(argv[2], words[1])))
			return commands[i].run(argc - 1 - n, argv + 1 + n);
	}
	fputs(usage, stderr);
	return 2;
}
