#include "netem/verify/verify.h"

#include "base/clock.h"
#include "base/file.h"
#include "netem/kernel/tc_batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define US	    1000LL
#define PATIENCE_US 20000	/* in addition to twice the longest answer */
#define SET_NS	    (1000 * US) /* two clocks are not read at once */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* What an echo carries and its answer brings back: whose it is, and which one. The kernel's id does
 * not do: a ping socket has one of its own choice. */
struct token {
	uint64_t mark;
	uint32_t number;
} __attribute__((packed));

struct run {
	const struct sy_ping *ping;
	struct sy_pongs *pongs;
	union address to;
	socklen_t to_size;
	uint64_t mark;
	int64_t sent_ns[SY_PING_MAX];
	bool answered[SY_PING_MAX];
	struct pollfd poll[SY_PING_MAX]; /* ICMP: the first one alone */
	int sockets;
	int64_t longest_ns;
	int64_t wall_ns; /* how far the wall clock was from the one that nobody sets */
};

static int parse_address(struct run *run, struct sy_error *err)
{
	const struct sy_ping *ping = run->ping;
	in_port_t port = htons((uint16_t)ping->port);

	if (inet_pton(AF_INET, ping->peer, &run->to.v4.sin_addr) == 1) {
		run->to.v4.sin_family = AF_INET;
		run->to.v4.sin_port = port;
		run->to_size = sizeof(run->to.v4);
	} else if (inet_pton(AF_INET6, ping->peer, &run->to.v6.sin6_addr) == 1) {
		run->to.v6.sin6_family = AF_INET6;
		run->to.v6.sin6_port = port;
		run->to_size = sizeof(run->to.v6);
	} else {
		return sy_fail(err, "'%s' is no IPv4 or IPv6 address", ping->peer);
	}
	return 0;
}

static void note_answer(struct run *run, uint32_t number, int64_t took_ns)
{
	if (number >= (uint32_t)run->pongs->sent || run->answered[number] || took_ns < 0)
		return; /* a duplicate, or not ours */
	run->answered[number] = true;
	run->pongs->s[run->pongs->received++] = (double)took_ns / 1e9;
	if (took_ns > run->longest_ns)
		run->longest_ns = took_ns;
}

/* --- ICMP --- */

/* Let the kernel pass ICMP echo replies only. */
static void filter_answers(int fd, int family)
{
	struct icmp_filter refused = {~(1U << ICMP_ECHOREPLY)};
	struct icmp6_filter refused6;

	ICMP6_FILTER_SETBLOCKALL(&refused6);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &refused6);
	if (family == AF_INET)
		(void)setsockopt(fd, SOL_RAW, ICMP_FILTER, &refused, sizeof(refused));
	else
		(void)setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &refused6, sizeof(refused6));
}

/* The mark first: setting it sets the priority as well. */
static int set_marks(int fd, int family, const struct sy_ping *ping, struct sy_error *err)
{
	int tos = SY_ECHO_TOS;

	if (family == AF_INET)
		(void)setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	else
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	if (ping->priority &&
	    setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &ping->priority, sizeof(ping->priority)) < 0)
		return sy_fail_errno(err, errno, "cannot set the priority of echo requests");
	return 0;
}

static int open_icmp(struct run *run, struct sy_error *err)
{
	int family = run->to.any.sa_family, on = 1;
	int protocol = family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(family, SOCK_RAW | flags, protocol);

	if (fd < 0 && (errno == EPERM || errno == EACCES))
		fd = socket(family, SOCK_DGRAM | flags, protocol);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot send ICMP echo requests");
	run->poll[0] = (struct pollfd){fd, POLLIN, 0};
	run->sockets = 1;
	filter_answers(fd, family);
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	if (set_marks(fd, run->to.any.sa_family, run->ping, err) < 0)
		return -1;
	if (connect(fd, &run->to.any, run->to_size) < 0)
		return sy_fail_errno(err, errno, "no way to %s", run->ping->peer);
	return 0;
}

/* RFC 1071; of IPv6 the kernel makes it. */
static uint16_t checksum(const void *data, size_t size)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		uint16_t word;

		memcpy(&word, (const char *)data + i, sizeof(word));
		sum += word;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* As long as ping(8)'s: 56 bytes behind the header. */
struct echo {
	struct icmphdr header; /* ICMPv6's is laid out alike */
	struct token token;
	char rest[56 - sizeof(struct token)];
};

static int send_echo(struct run *run, int number, struct sy_error *err)
{
	bool v4 = run->to.any.sa_family == AF_INET;
	struct echo echo = {.header = {.type = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST},
			    .token = {run->mark, (uint32_t)number}};

	echo.header.un.echo.id = (uint16_t)run->mark;
	echo.header.un.echo.sequence = htons((uint16_t)(number + 1));
	if (v4)
		echo.header.checksum = checksum(&echo, sizeof(echo));
	run->sent_ns[number] = sy_now_ns(CLOCK_MONOTONIC);
	if (send(run->poll[0].fd, &echo, sizeof(echo), 0) < 0 && errno != ENOBUFS &&
	    errno != EAGAIN && errno != ECONNREFUSED)
		return sy_fail_errno(err, errno, "no echo request goes to %s", run->ping->peer);
	return 0;
}

static int64_t wall_ns(void)
{
	return sy_now_ns(CLOCK_REALTIME) - sy_now_ns(CLOCK_MONOTONIC);
}

/* How long ago the kernel took the message in, by its wall clock; 0 when it does not say, or its
 * clock was set since the first echo. */
static int64_t age_ns(const struct run *run, struct msghdr *message)
{
	int64_t wall = sy_now_ns(CLOCK_REALTIME), age;
	int64_t moved = wall - sy_now_ns(CLOCK_MONOTONIC) - run->wall_ns;
	struct timespec stamp;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
		age = wall - (stamp.tv_sec * 1000000000LL + stamp.tv_nsec);
		return age > 0 && age < 1000000000LL && moved > -SET_NS && moved < SET_NS ? age : 0;
	}
	return 0;
}

static void parse_answer(struct run *run, const char *data, size_t size, int64_t at_ns)
{
	bool v4 = run->to.any.sa_family == AF_INET;
	struct echo echo;

	if (v4 && size &&
	    (uint8_t)data[0] >> 4 == 4) { /* a raw socket of IPv4 shows the IP header too */
		size_t header = (size_t)(data[0] & 15) * 4;

		data += header;
		size -= header < size ? header : size;
	}
	if (size < sizeof(echo))
		return;
	memcpy(&echo, data, sizeof(echo));
	if (echo.header.type == (v4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) &&
	    echo.token.mark == run->mark && echo.token.number < SY_PING_MAX)
		note_answer(run, echo.token.number, at_ns - run->sent_ns[echo.token.number]);
}

static void receive_icmp(struct run *run)
{
	char data[256], control[128];
	struct iovec part = {data, sizeof(data)};

	for (;;) {
		struct msghdr message = {.msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control,
					 .msg_controllen = sizeof(control)};
		ssize_t got = recvmsg(run->poll[0].fd, &message, 0);

		if (got < 0 && errno != ECONNREFUSED && errno != EHOSTUNREACH &&
		    errno != ENETUNREACH)
			return;
		if (got > 0) {
			/* A process that is delayed between the two clocks measures too long,
			 * never too short. */
			int64_t age = age_ns(run, &message);

			parse_answer(run, data, (size_t)got, sy_now_ns(CLOCK_MONOTONIC) - age);
		}
	}
}

/* --- TCP --- */

static int send_syn(struct run *run, int number, struct sy_error *err)
{
	int fd = socket(run->to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make a TCP socket");
	run->poll[number] = (struct pollfd){fd, POLLOUT, 0};
	run->sockets = number + 1;
	if (set_marks(fd, run->to.any.sa_family, run->ping, err) < 0)
		return -1;
	run->sent_ns[number] = sy_now_ns(CLOCK_MONOTONIC);
	if (connect(fd, &run->to.any, run->to_size) < 0 && errno != EINPROGRESS &&
	    errno != ECONNREFUSED)
		return sy_fail_errno(err, errno, "no TCP connection goes to %s", run->ping->peer);
	return 0;
}

static void receive_tcp(struct run *run)
{
	int64_t now = sy_now_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < run->sockets; i++) {
		int error = 0;
		socklen_t size = sizeof(error);

		if (run->poll[i].fd < 0 || !run->poll[i].revents)
			continue;
		(void)getsockopt(run->poll[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
		if (!error || error == ECONNREFUSED)
			note_answer(run, (uint32_t)i, now - run->sent_ns[i]);
		(void)close(run->poll[i].fd);
		run->poll[i].fd = -1; /* poll(2) passes it over */
	}
}

/* --- both --- */

/* When to stop listening: the next one is to be sent, or waiting is no use any more. */
static int64_t deadline_ns(const struct run *run, int64_t begun_ns)
{
	const struct sy_ping *ping = run->ping;
	const struct sy_pongs *pongs = run->pongs;
	int64_t last_ns, wait_ns = ping->wait_us * US;
	int64_t enough_ns = 2 * run->longest_ns + PATIENCE_US * US;

	if (pongs->sent < ping->count)
		return begun_ns + pongs->sent * ping->gap_us * US;
	last_ns = run->sent_ns[ping->count - 1];
	if (pongs->received == ping->count)
		return 0;
	if (2 * pongs->received >= ping->count && enough_ns < wait_ns)
		wait_ns = enough_ns;
	return last_ns + wait_ns;
}

static void listen_until_due(struct run *run, int64_t begun_ns)
{
	int64_t remaining;

	while ((remaining = deadline_ns(run, begun_ns) - sy_now_ns(CLOCK_MONOTONIC)) > 0) {
		struct timespec wait = {remaining / 1000000000LL, remaining % 1000000000LL};

		if (ppoll(run->poll, (nfds_t)run->sockets, &wait, NULL) <= 0)
			continue;
		if (run->ping->port)
			receive_tcp(run);
		else
			receive_icmp(run);
	}
}

static int exchange(struct run *run, struct sy_error *err)
{
	int64_t begun_ns = sy_now_ns(CLOCK_MONOTONIC);

	run->wall_ns = wall_ns();
	for (int i = 0; i < 3; i++) { /* a delay between the two readings makes it smaller */
		int64_t again = wall_ns();

		run->wall_ns = again > run->wall_ns ? again : run->wall_ns;
	}
	if (!run->ping->port && open_icmp(run, err) < 0)
		return -1;
	for (int i = 0; i < run->ping->count; i++) {
		if ((run->ping->port ? send_syn : send_echo)(run, i, err) < 0)
			return -1;
		run->pongs->sent++;
		listen_until_due(run, begun_ns);
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int sy_ping(const struct sy_ping *ping, struct sy_pongs *pongs, struct sy_error *err)
{
	struct run run = {.ping = ping, .pongs = pongs};
	int result;

	memset(pongs, 0, sizeof(*pongs));
	if (parse_address(&run, err) < 0)
		return -1;
	if (getrandom(&run.mark, sizeof(run.mark), 0) != sizeof(run.mark))
		return sy_fail_errno(err, errno, "no random number");
	result = exchange(&run, err);
	for (int i = 0; i < run.sockets; i++)
		if (run.poll[i].fd >= 0)
			(void)close(run.poll[i].fd);
	qsort(pongs->s, (size_t)pongs->received, sizeof(pongs->s[0]), ascending);
	return result;
}
