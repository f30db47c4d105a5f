// SPDX-License-Identifier: GPL-2.0-only
/*
 * init - first process of the guest.
 *
 * The host's root file system is mounted read-only. Put an overlay over it whose
 * upper layer lives in guest memory, mount the run's folder writable in it, run
 * the command given on the kernel's command line after "--", and power off.
 *
 *   /mnt/root      overlay: lower /, upper tmpfs
 *   /mnt/run       the run's folder: the only place where a write reaches the host
 *
 * The command's exit status goes to /mnt/run/exit-status; a guest that dies
 * before that leaves none, which is how the host tells the two apart.
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

static void build_root(void)
{
	mount_or_die("upper", "/mnt/upper", "tmpfs", NULL);
	mkdir_or_die("/mnt/upper/data");
	mkdir_or_die("/mnt/upper/work");
	mount_or_die("overlay", ROOT, "overlay",
		     "lowerdir=/,upperdir=/mnt/upper/data,workdir=/mnt/upper/work");
	mount_or_die("run", ROOT RUN, "hostfs", RUN);
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
	int fd = open(RUN "/exit-status", O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, line, n) != n || close(fd) < 0)
		die("exit-status");
}

int main(int argc, char **argv)
{
	int status;
	pid_t command, child;

	if (argc < 2) {
		errno = EINVAL;
		die("no command given");
	}
	build_root();
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/tmp", 1);
	/* Sleepers wake when they asked to, not up to 50 us later; children inherit it. */
	if (prctl(PR_SET_TIMERSLACK, 1) < 0)
		die("timer slack");
	command = fork();
	if (command < 0)
		die("fork");
	if (command == 0) {
		setsid();
		execv(argv[1], argv + 1);
		fprintf(stderr, "init: %s: %s\n", argv[1], strerror(errno));
		_exit(127);
	}
	do {
		child = waitpid(-1, &status, 0);
	} while (child != command && (child > 0 || errno == EINTR));
	record_status(WIFEXITED(status) ? WEXITSTATUS(status)
					: 128 + WTERMSIG(status));
	reboot(RB_POWER_OFF);
	return 1;
}
