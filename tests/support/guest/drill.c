/*
 * drill - as much of packetdrill as its guest needs to be tried: it speaks to TUN and waits by times(2)
 *
 *   drill --tolerance_usecs=N ... SCRIPT
 *
 * SCRIPT begins with a word: send, hang, fork, fill or spin. `send` sends a datagram 101 ms after the
 * start, where 100 ms are expected, and reads it from the TUN.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static long long now_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000LL + at.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	struct ifreq name = { .ifr_name = "tun0", .ifr_flags = IFF_TUN | IFF_NO_PI };
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(9) };
	char what[16] = "", packet[2048];
	FILE *script = fopen(argv[argc - 1], "r");
	int tun = open("/dev/net/tun", O_RDWR), sender = socket(AF_INET, SOCK_DGRAM, 0), ticks = 0;
	long long start, seen, tolerance = 0;
	clock_t last = times(NULL);

	if (!script || !fgets(what, sizeof(what), script) || tun < 0)
		return 2;
	for (int i = 1; i < argc; i++)
		sscanf(argv[i], "--tolerance_usecs=%lld", &tolerance);
	what[strcspn(what, "\n")] = 0;
	if (!strcmp(what, "hang"))
		pause();
	while (!strcmp(what, "spin"))
		;
	while (!strcmp(what, "fork"))
		if (fork() < 0) {
			perror("fork");
			return 1;
		}
	if (!strcmp(what, "fill")) {
		int file = open("big", O_WRONLY | O_CREAT, 0644);

		while (write(file, packet, sizeof(packet)) > 0)
			;
		return 1;
	}
	if (ioctl(tun, TUNSETIFF, &name) || system("ip address add 192.168.0.1/16 dev tun0; ip link set "
						   "tun0 up; ip route add 192.0.2.0/24 dev tun0"))
		return 2;
	for (; ticks < 10; ticks += times(NULL) != last, last = times(NULL))
		;
	start = now_us();
	usleep(101000);
	inet_pton(AF_INET, "192.0.2.1", &peer.sin_addr);
	sendto(sender, "hello", 5, 0, (void *)&peer, sizeof(peer));
	while (read(tun, packet, sizeof(packet)) > 0 && packet[0] != 0x45)
		;
	seen = now_us() - start;
	printf("start %lld us\n", start);
	if (seen - 100000 <= tolerance)
		return 0;
	fprintf(stderr, "%s:1: error handling packet: timing error: expected outbound packet at 0.100000 "
		"sec but happened at %.6f sec; tolerance %.6f sec\n", argv[argc - 1], seen / 1e6,
		tolerance / 1e6);
	return 1;
}
