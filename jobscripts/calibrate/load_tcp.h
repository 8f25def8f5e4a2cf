/* TCP both ways, by send() and recv(), which are no read and write calls. Part of load.c. */
#ifndef LOAD_TCP_H
#define LOAD_TCP_H

#include <arpa/inet.h>
#include <linux/tcp.h> /* tcpi_segs_out: glibc's own struct ends before it */
#include <netinet/in.h>
#include <sys/socket.h>

#include "load_processes.h"

#define CONNECT_TRIES 100

/* `sends` first, then the other way round: no buffer is ever full on both sides. */
static void exchange(int fd, int64_t bytes, bool sends, bool counted)
{
	for (int turn = 0; turn < 2; turn++) {
		bool sending = sends == (turn == 0);

		for (int64_t remaining = bytes; remaining > 0;) {
			size_t most = (size_t)(remaining < BLOCK ? remaining : BLOCK);
			ssize_t n = sending ? send(fd, block, most, MSG_NOSIGNAL)
					    : recv(fd, block, most, 0);

			if (n <= 0)
				die("TCP: %s", n < 0 ? strerror(errno) : "the other end has left");
			remaining -= n;
			if (counted && sending)
				counts->sent_bytes += n;
			else if (counted)
				counts->received_bytes += n;
		}
	}
}

/* Segments of this connection in both directions, acknowledgements and all: each has headers. */
static void count_segments(int fd)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
		counts->segments += info.tcpi_segs_out + info.tcpi_segs_in;
}

static int listener(uint16_t port, struct sockaddr_in *bound)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t size = sizeof(*bound);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	any.sin_addr.s_addr = htonl(port ? INADDR_ANY : INADDR_LOOPBACK);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)bound, &size) < 0)
		die("cannot listen on port %d: %s", port, strerror(errno));
	return fd;
}

static int connected(const struct sockaddr_in *to)
{
	for (int i = 0; i < CONNECT_TRIES; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		double start = monotonic_s();

		if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0) {
			counts->connect_us = (int64_t)((monotonic_s() - start) * 1e6);
			return fd;
		}
		(void)close(fd);
		sleep_s(0.05); /* the server may not be there yet */
	}
	die("TCP: cannot connect: %s", strerror(errno));
}

/* One connection: receives, then sends. */
static void take_one(int at, int64_t bytes)
{
	int fd = accept(at, NULL, NULL);

	if (fd < 0)
		die("accept: %s", strerror(errno));
	exchange(fd, bytes, false, true);
	(void)close(fd);
	(void)close(at);
}

/* The same, from elsewhere. */
static void serve(uint16_t port, int64_t bytes)
{
	struct sockaddr_in bound;

	take_one(listener(port, &bound), bytes);
}

static void tcp_to(const char *host, uint16_t port, int64_t bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd;

	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		die("tcp: %s is no IPv4 address", host);
	fd = connected(&to);
	exchange(fd, bytes, true, true);
	count_segments(fd);
	(void)close(fd);
}

/* Both ends are ours, over the loopback device: each byte is sent once and received once. */
static void run_tcp_in_process(int64_t bytes)
{
	struct sockaddr_in bound;
	int at = listener(0, &bound);

	if (counted_fork() == 0) {
		int fd = connected(&bound);

		exchange(fd, bytes, true, false);
		(void)close(fd);
		end_process();
	}
	take_one(at, bytes);
	wait_one();
}

#endif
