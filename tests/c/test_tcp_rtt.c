/* Round-trip times: their statistics, and the kernel's answers as bytes and as they come. */
#include "tap.h"

#include "counters/job_connections.h"
#include "counters/tcp_rtt.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 10001

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Compared with the exact values of all readings, sorted. */
static void test_against_all_values(double octaves)
{
	static struct sy_rtt_counts counts;
	static uint32_t values[MANY];
	struct sy_rtt rtt = {0};
	double sum = 0, squares = 0, median;

	memset(&counts, 0, sizeof(counts));
	for (int i = 0; i < MANY; i++) {
		values[i] = (uint32_t)exp2(octaves * (double)random() / RAND_MAX);
		sy_rtt_add(&rtt, &counts, values[i]);
		sum += values[i];
	}
	for (int i = 0; i < MANY; i++)
		squares += pow(values[i] - sum / MANY, 2);
	qsort(values, MANY, sizeof(values[0]), compare);
	median = values[MANY / 2];
	ok(fabs(sy_rtt_median_us(&rtt, &counts) - median) <= 0.008 * median,
	   "%g octaves: median %g beside %g", octaves, sy_rtt_median_us(&rtt, &counts), median);
	ok(fabs(rtt.mean_us * MANY / sum - 1) < 1e-9, "mean");
	ok(fabs(sy_rtt_sd_us(&rtt) / sqrt(squares / (MANY - 1)) - 1) < 1e-9, "deviation");
	is_int(rtt.min_us, values[0], "least");
	is_int(rtt.max_us, values[MANY - 1], "largest");
}

static void test_every_bucket(void)
{
	static struct sy_rtt_counts counts;
	int wrong = 0;

	for (uint64_t us = 0; us <= UINT32_MAX; us += us / 997 + 1) {
		struct sy_rtt rtt = {0};
		double median;

		memset(&counts, 0, sizeof(counts));
		sy_rtt_add(&rtt, &counts, (uint32_t)us);
		sy_rtt_add(&rtt, &counts, (uint32_t)us);
		rtt.min_us = 0; /* or the median would be held by the two ends */
		rtt.max_us = UINT32_MAX;
		median = sy_rtt_median_us(&rtt, &counts);
		wrong += fabs(median - (double)us) > 0.008 * (double)us;
	}
	is_int(wrong, 0, "from 0 to 2^32 - 1 µs no median is off by more than 0.8 %%");
}

static void test_few(void)
{
	static struct sy_rtt_counts counts;
	struct sy_rtt rtt = {0};

	ok(sy_rtt_median_us(&rtt, &counts) < 0, "no readings, no median");
	sy_rtt_add(&rtt, &counts, 50300);
	ok(sy_rtt_median_us(&rtt, &counts) == 50300, "one reading is its own median");
	ok(sy_rtt_sd_us(&rtt) < 0, "and has no deviation");
	sy_rtt_add(&rtt, &counts, 100000);
	ok(fabs(sy_rtt_median_us(&rtt, &counts) - 75150) < 750, "of two: between them");
	is_int((int64_t)(sy_rtt_sd_us(&rtt) + 0.5), 35143, "deviation of two");
}

/* --- the kernel's answers --- */

struct answer {
	struct inet_diag_msg message;
	uint16_t tos_size, tos_type; /* an attribute that is passed over */
	uint32_t tos;
	uint16_t info_size, info_type;
	struct tcp_info info;
} __attribute__((packed, aligned(4))); /* as netlink aligns it */

static void test_parse(void)
{
	struct answer answer = {
	    .message = {.idiag_family = AF_INET, .idiag_uid = 7, .idiag_inode = 99},
	    .tos_size = 5,
	    .tos_type = INET_DIAG_TOS,
	    .info_size = 4 + sizeof(struct tcp_info),
	    .info_type = INET_DIAG_INFO,
	    .info = {.tcpi_rtt = 50300,
		     .tcpi_snd_cwnd = 10,
		     .tcpi_rcv_space = 14600,
		     .tcpi_total_retrans = 3,
		     .tcpi_min_rtt = UINT32_MAX}};
	struct sy_tcp_socket socket;

	answer.message.id.idiag_src[0] = htonl(0x0a000001);
	answer.message.id.idiag_dst[0] = htonl(0x0a000002);
	ok(sy_diag_parse(&answer, sizeof(answer), &socket) == 0, "an answer");
	ok(socket.uid == 7 && socket.inode == 99 && !socket.same_node, "whose it is");
	ok(socket.rtt_us == 50300 && socket.retransmitted == 3, "its figures");
	ok(socket.snd_cwnd == 10 && socket.rcv_space_bytes == 14600, "its windows");
	is_int(socket.min_rtt_us, 0, "no smallest round trip yet");
	answer.message.id.idiag_dst[0] = htonl(0x0a000001);
	(void)sy_diag_parse(&answer, sizeof(answer), &socket);
	ok(socket.same_node, "to its own address");
	/* Linux 3.10 fills 104 bytes of it. */
	answer.info_size = 4 + 104;
	answer.info.tcpi_min_rtt = 5;
	ok(sy_diag_parse(&answer, offsetof(struct answer, info) + 104, &socket) == 0 &&
	       socket.rtt_us == 50300 && socket.min_rtt_us == 0,
	   "an older kernel tells less");
	answer.info_size = 4000;
	ok(sy_diag_parse(&answer, sizeof(answer), &socket) == 0 && socket.rtt_us == 0,
	   "an attribute that reaches behind the end is not read");
	ok(sy_diag_parse(&answer, 20, &socket) < 0, "half an answer");
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	(void)getsockname(fd, (struct sockaddr *)&address, &size);
	return address.sin_port;
}

struct seen {
	uint16_t port;
	int all, ours, index;
	uint32_t snd_cwnd, rcv_space_bytes;
};

static void note_socket(void *context, int index, const struct sy_tcp_socket *socket)
{
	struct seen *seen = context;

	seen->all++;
	seen->ours += socket->id.idiag_sport == seen->port || socket->id.idiag_dport == seen->port;
	seen->index = index;
	seen->snd_cwnd = socket->snd_cwnd;
	seen->rcv_space_bytes = socket->rcv_space_bytes;
}

/* A connection over loopback: listing leaves it out, asking finds it. */
static void test_kernel(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM, 0), end = socket(AF_INET, SOCK_STREAM, 0);
	struct sy_tcp_socket known = {.family = AF_INET}, gone = {.family = AF_INET};
	const struct sy_tcp_socket *const both[] = {&gone, &known};
	struct sy_error err;
	struct seen seen = {0};
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);
	int fd = sy_diag_open(&err);

	ok(fd >= 0, "netlink: %s", fd < 0 ? err.text : "open");
	(void)bind(listener, (struct sockaddr *)&address, sizeof(address));
	(void)listen(listener, 1);
	address.sin_port = port_of(listener);
	ok(connect(end, (struct sockaddr *)&address, sizeof(address)) == 0, "a connection");
	seen.port = port_of(end);
	is_int(sy_diag_list(fd, note_socket, &seen), 0, "a listing");
	is_int(seen.ours, 0, "loopback is left out");
	known.id.idiag_sport = port_of(end);
	known.id.idiag_dport = address.sin_port;
	known.id.idiag_src[0] = known.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
	known.id.idiag_cookie[0] = known.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	gone.id = known.id;
	gone.id.idiag_sport = htons(1);
	seen = (struct seen){.port = port_of(end)};
	is_int(sy_diag_query(fd, both, 2, note_socket, &seen), 0, "two are asked for");
	ok(seen.all == 1 && seen.ours == 1 && seen.index == 1, "one is there: the second");
	(void)getsockopt(end, IPPROTO_TCP, TCP_INFO, &info, &size);
	is_int(seen.snd_cwnd, info.tcpi_snd_cwnd, "its congestion window");
	is_int(seen.rcv_space_bytes, info.tcpi_rcv_space, "its receive space");
	(void)close(fd);
	(void)close(end);
	(void)close(listener);
}

/* A listing of one connection of the job's, as the kernel would answer; `has_figures`: one that
 * closes has none (inet_twsk_diag_fill() in net/ipv4/inet_diag.c). */
static void list_one(struct sy_tcp *tcp, int kernel, struct tcp_info info, bool has_figures)
{
	static struct sy_processes processes = {.named = true};
	struct {
		struct nlmsghdr header;
		struct answer answer;
		struct nlmsghdr end __attribute__((aligned(4)));
	} list = {.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct answer)),
			     .nlmsg_type = TCPDIAG_GETSOCK},
		  .answer = {.message = {.idiag_family = AF_INET},
			     .tos_size = 5,
			     .tos_type = INET_DIAG_TOS,
			     .info_size = 4 + sizeof(struct tcp_info),
			     .info_type = has_figures ? INET_DIAG_INFO : INET_DIAG_TOS,
			     .info = info},
		  .end = {.nlmsg_len = sizeof(list.end), .nlmsg_type = NLMSG_DONE}};

	list.answer.message.id.idiag_sport = htons(5000);
	list.answer.message.id.idiag_src[0] = htonl(0x0a000001);
	if (write(kernel, &list, sizeof(list)) != (ssize_t)sizeof(list))
		return;
	(void)sy_tcp_read(tcp, &processes, 0, true);
	for (int i = 0; i < tcp->count; i++)
		tcp->connection[i].whose = SY_WHOSE_OURS; /* found among its open files */
}

static int64_t retransmitted_after(struct sy_tcp *tcp, int kernel, uint32_t told, bool has_figures)
{
	list_one(tcp, kernel, (struct tcp_info){.tcpi_total_retrans = told}, has_figures);
	return tcp->status.retransmitted;
}

static void test_retransmissions(void)
{
	static struct sy_tcp tcp = {.listed_at_us = -1, .sockstat_fd = -1, .group_fd = -1};
	static struct sy_tcp_counts counts;
	int pair[2];

	tcp.uid = SY_ANY_USER;
	tcp.counts = &counts;
	(void)socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
	tcp.diag_fd = pair[0];
	is_int(retransmitted_after(&tcp, pair[1], 7, true), 0, "older than the sampler");
	is_int(tcp.count, 1, "a connection");
	is_int(retransmitted_after(&tcp, pair[1], 10, true), 3, "3 more");
	is_int(retransmitted_after(&tcp, pair[1], 0, false), 3, "it closes: no figures, no more");
	is_int(retransmitted_after(&tcp, pair[1], 2, true), 3, "a counter that drops");
	is_int(retransmitted_after(&tcp, pair[1], 12, true), 5, "and one that grows again");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* Read when data was acknowledged or received; the first listing finds out whose it is. */
static void test_windows(void)
{
	static struct sy_tcp tcp = {.listed_at_us = -1, .sockstat_fd = -1, .group_fd = -1};
	static struct sy_tcp_counts counts;
	static const struct tcp_info notes[] = {
	    {.tcpi_snd_cwnd = 10, .tcpi_rcv_space = 1000},
	    {.tcpi_snd_cwnd = 10, .tcpi_rcv_space = 1000},
	    {.tcpi_snd_cwnd = 20, .tcpi_rcv_space = 1000, .tcpi_bytes_acked = 1},
	    {.tcpi_snd_cwnd = 20, .tcpi_rcv_space = 1000, .tcpi_bytes_acked = 1}, /* idle */
	    {.tcpi_snd_cwnd = 90, .tcpi_rcv_space = 8000, .tcpi_bytes_received = 1},
	};
	int pair[2];

	tcp.uid = SY_ANY_USER;
	tcp.counts = &counts;
	(void)socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
	tcp.diag_fd = pair[0];
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		list_one(&tcp, pair[1], notes[i], true);
	list_one(&tcp, pair[1], (struct tcp_info){0}, false);
	is_int(tcp.status.snd_cwnd.readings, 3, "three readings");
	ok(sy_rtt_median_us(&tcp.status.snd_cwnd, &counts.snd_cwnd) == 20, "their median");
	is_int(tcp.status.snd_cwnd.max_us, 90, "the largest congestion window");
	is_int(tcp.status.rcv_space_bytes.max_us, 8000, "the largest receive space");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

int main(void)
{
	test_windows();
	test_retransmissions();
	test_against_all_values(6);
	test_against_all_values(16);
	test_against_all_values(31.9);
	test_every_bucket();
	test_few();
	test_parse();
	test_kernel();
	return done_testing();
}
