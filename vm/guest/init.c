// SPDX-License-Identifier: GPL-2.0-only
/*
 * init - first process of the guest.
 *
 * The host's root file system is mounted read-only. Put an overlay over it whose
 * upper layer lives in guest memory, mount the run's folder writable in it, run
 * the command given on the kernel's command line after "--", and power off.
 *
 *   /mnt/root      overlay: lower /, upper tmpfs
 *   /mnt/run       the run's folder: the only place where a write reaches the host (a stock
 *                  kernel's: see mount_host)
 *
 * The command's exit status goes to /mnt/run/exit-status; a guest that dies
 * before that leaves none, which is how the host distinguishes the two.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/mnt/root"
#define RUN  "/mnt/run"
#define SHARE "/mnt/share"
#define PROGRESS "/sockets/progress.json"
#define MODULES "/usr/lib/modules"

static const char *share;		/* NULL in user-mode Linux */

static void die(const char *what)
{
	fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void mount_or_die(const char *source, const char *target,
			 const char *type, const char *options)
{
	if (mount(source, target, type, 0, options) < 0)
		die(target);
}

static void mkdir_or_die(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		die(path);
}

/*
 * User-mode Linux reaches the host's files by path, without a wait. A stock kernel reaches them
 * over a share that QEMU named (its command line has share=NAME), and waits for each: what it
 * writes in a run stays in memory and is copied to the share at the end, so that no packet waits
 * for the host. Its first process tells the host of progress over the second serial port. modprobe
 * finds the kernel's own modules where it looks for them.
 */
static void mount_host(void)
{
	if (!share) {
		mount_or_die("run", ROOT RUN, "hostfs", RUN);
		return;
	}
	mkdir_or_die(ROOT SHARE);
	mount_or_die(share, ROOT SHARE, "9p",
		     "trans=virtio,version=9p2000.L,msize=512000,cache=mmap");
	mount_or_die("run", ROOT RUN, "tmpfs", "size=90%");
	mkdir_or_die(ROOT RUN "/sockets");
	if (symlink("/dev/ttyS1", ROOT RUN PROGRESS) < 0)
		die(PROGRESS);
	mkdir_or_die(ROOT MODULES);
	if (mount(ROOT "/mnt/modules", ROOT MODULES, NULL, MS_BIND, NULL) < 0)
		die(ROOT MODULES);
}

static void build_root(void)
{
	mount_or_die("upper", "/mnt/upper", "tmpfs", NULL);
	mkdir_or_die("/mnt/upper/data");
	mkdir_or_die("/mnt/upper/work");
	mount_or_die("overlay", ROOT, "overlay",
		     "lowerdir=/,upperdir=/mnt/upper/data,workdir=/mnt/upper/work");
	mount_host();
	mount_or_die("proc", ROOT "/proc", "proc", NULL);
	mount_or_die("sys", ROOT "/sys", "sysfs", NULL);
	mount_or_die("dev", ROOT "/dev", "devtmpfs", NULL);
	mkdir_or_die(ROOT "/dev/pts");
	mount_or_die("pts", ROOT "/dev/pts", "devpts", "ptmxmode=0666");
	mount_or_die("tmp", ROOT "/tmp", "tmpfs", NULL);
	mount_or_die("run", ROOT "/run", "tmpfs", NULL);
	mkdir_or_die(ROOT "/run/netns");
	if (chroot(ROOT) < 0 || chdir("/") < 0)
		die("chroot " ROOT);
	if (unlink("/dev/ptmx") < 0 && errno != ENOENT)
		die("/dev/ptmx");
	if (symlink("pts/ptmx", "/dev/ptmx") < 0 && errno != EEXIST)
		die("/dev/ptmx");
}

static void record_status(int status)
{
	char line[16];
	int n = snprintf(line, sizeof(line), "%d\n", status);
	int fd = open(share ? SHARE "/exit-status" : RUN "/exit-status",
		      O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, line, n) != n || close(fd) < 0)
		die("exit-status");
}

/* Run a program to its end; returns its wait status. */
static int run(char *const argv[])
{
	pid_t command = fork(), child;
	int status;

	if (command < 0)
		die("fork");
	if (command == 0) {
		setsid();
		execv(argv[0], argv);
		fprintf(stderr, "init: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	do {
		child = waitpid(-1, &status, 0);
	} while (child != command && (child > 0 || errno == EINTR));
	return status;
}

/* Owners are not copied: the user who owns the host's folder may not give files away. */
static void copy_or_die(char *from, char *to)
{
	if (run((char *[]){ "/bin/cp", "-dR", "--preserve=mode,timestamps", from, to, NULL }) != 0) {
		errno = EIO;
		die(to);
	}
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 2) {
		errno = EINVAL;
		die("no command given");
	}
	share = getenv("share");
	build_root();
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/tmp", 1);
	/* Sleepers wake when they asked to, not up to 50 us later; children inherit it. */
	if (prctl(PR_SET_TIMERSLACK, 1) < 0)
		die("timer slack");
	if (share)
		copy_or_die(SHARE "/plan.json", RUN);
	status = run(argv + 1);
	if (share) {
		if (unlink(RUN PROGRESS) < 0)
			die(PROGRESS);
		copy_or_die(RUN "/.", SHARE);
	}
	record_status(WIFEXITED(status) ? WEXITSTATUS(status)
					: 128 + WTERMSIG(status));
	reboot(RB_POWER_OFF);
	return 1;
}
