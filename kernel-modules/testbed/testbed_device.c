// SPDX-License-Identifier: GPL-2.0-only
/*
 * twoway_testbed - instruments of an experiment that run in the guest's kernel
 *
 *	open /dev/twoway_testbed	an instrument that does nothing yet
 *	write a line			its commands, each in the network namespace of who writes
 *	read				ends it, or waits until it has ended, and says what it did
 *	close				ends it
 *
 * An instrument is one of
 *
 *	tap INTERFACE in|out|inout SNAP FILE
 *		packets of an interface, as tcpdump writes them (testbed_tap.c)
 *	sockets NAME
 *	queue INTERFACE
 *	sample START STOP INTERVAL PROGRESS FOLDER
 *		TCP_INFO of the namespace's connections and the lengths of interfaces' queues, as
 *		vm/guest/observe.c writes them (testbed_sampler.c); the last line starts it
 *
 * The device opens for root with CAP_NET_ADMIN alone: instruments see every packet.
 */

#include <linux/capability.h>
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "testbed.h"

/* A path, and some words. */
#define LINE_BYTES	(8 << 10)
#define MOST_WORDS	16

static const struct {
	const char *word;
	int (*command)(struct instrument **instrument, int argc, char **argv);
} commands[] = {
	{ "tap", tap_command },
	{ "sockets", sampler_command },
	{ "queue", sampler_command },
	{ "sample", sampler_command },
};

struct session {
	struct mutex lock;			/* one call at a time */
	struct instrument *instrument;
	bool finished;
	int length;				/* of summary */
	char summary[TESTBED_SUMMARY];
};

struct file *testbed_create(const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_LARGEFILE | O_NOFOLLOW | O_NONBLOCK;
	struct file *file = filp_open(path, flags, 0644);

	if (IS_ERR(file) || S_ISREG(file_inode(file)->i_mode))
		return file;
	fput(file);
	return ERR_PTR(-EINVAL);
}

static int execute(struct session *session, char *line)
{
	char *argv[MOST_WORDS], *word;
	int argc = 0, i;

	line = strim(line);
	while ((word = strsep(&line, " "))) {
		if (!*word)
			continue;
		if (argc == MOST_WORDS)
			return -E2BIG;
		argv[argc++] = word;
	}
	for (i = 0; argc && i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[0], commands[i].word))
			return commands[i].command(&session->instrument, argc, argv);
	return -EINVAL;
}

static ssize_t testbed_write(struct file *file, const char __user *from, size_t size,
			     loff_t *position)
{
	struct session *session = file->private_data;
	char *line;
	int err;

	if (size > LINE_BYTES)
		return -E2BIG;
	line = memdup_user_nul(from, size);
	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&session->lock);
	err = session->finished ? -ESHUTDOWN : execute(session, line);
	mutex_unlock(&session->lock);
	kfree(line);
	return err ?: size;
}

static ssize_t testbed_read(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct session *session = file->private_data;
	struct instrument *instrument;
	int err = 0;

	if (mutex_lock_interruptible(&session->lock))
		return -ERESTARTSYS;
	instrument = session->instrument;
	if (!session->finished && instrument) {
		err = instrument->ops->finish(instrument, session->summary, TESTBED_SUMMARY);
		session->length = max(err, 0);
	}
	session->finished = err != -ERESTARTSYS;
	mutex_unlock(&session->lock);
	if (err < 0)
		return err;
	return simple_read_from_buffer(to, size, position, session->summary, session->length);
}

static int testbed_open(struct inode *inode, struct file *file)
{
	struct session *session;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	mutex_init(&session->lock);
	file->private_data = session;
	return 0;
}

static int testbed_release(struct inode *inode, struct file *file)
{
	struct session *session = file->private_data;

	if (session->instrument)
		session->instrument->ops->release(session->instrument);
	kfree(session);
	return 0;
}

static const struct file_operations testbed_fops = {
	.owner		= THIS_MODULE,
	.open		= testbed_open,
	.write		= testbed_write,
	.read		= testbed_read,
	.release	= testbed_release,
};

static struct miscdevice testbed_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "twoway_testbed",
	.fops	= &testbed_fops,
	.mode	= 0600,
};

module_misc_device(testbed_device);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("Instruments of a network experiment that run in the guest's kernel");
MODULE_LICENSE("GPL");
