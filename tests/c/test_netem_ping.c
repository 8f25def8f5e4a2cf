/* Round-trip times on the loopback device: ICMP and TCP, both families, and a peer that does not
 * answer. */
#include "tap.h"

#include "base/clock.h"

#include "netem/verify/verify.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int set_after; /* readings of the wall clock until it is set forward; 0: never */

/* In the C library's place: the kernel's stamps of packets are by its own. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock != CLOCK_REALTIME || !set_after)
		return result;
	if (set_after > 1)
		set_after--;
	else
		now->tv_nsec += 50000000;
	return result;
}

static double now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_answers(const char *peer, int port)
{
	struct sy_ping ping = {
	    .peer = peer, .port = port, .count = 20, .gap_us = 1000, .wait_us = 1000000};
	struct sy_pongs pongs;
	struct sy_error err = {""};
	double begun = now_s(), took;
	int ascending = 1;

	if (!ok(sy_ping(&ping, &pongs, &err) == 0, "%s port %d can be asked %s", peer, port,
		err.text))
		return;
	took = now_s() - begun;
	is_int(pongs.sent, 20, "all are sent");
	is_int(pongs.received, 20, "all are answered, each once");
	for (int i = 1; i < pongs.received; i++)
		ascending &= pongs.s[i - 1] <= pongs.s[i];
	ok(ascending && pongs.s[0] > 0 && pongs.s[19] < took, "times ascend, within %g s", took);
}

/* By a clock that was set 50 ms forward an answer would precede its request. */
static void test_clock_set(void)
{
	set_after = 10;
	test_answers("127.0.0.1", 0);
	is_int(set_after, 1, "the clock was set meanwhile");
	set_after = 0;
}

/* A listening socket's port. */
static int listen_somewhere(int *fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(*fd, (struct sockaddr *)&address, size) < 0 || listen(*fd, 32) < 0 ||
	    getsockname(*fd, (struct sockaddr *)&address, &size) < 0)
		return -1;
	return ntohs(address.sin_port);
}

static void test_tcp(void)
{
	int fd, port = listen_somewhere(&fd);

	test_answers("127.0.0.1", port);
	(void)close(fd);
	test_answers("127.0.0.1", port); /* refused: an answer too */
	test_answers("::1", port);
}

/* Nobody accepts: when its queue of one is full, a socket drops what comes. */
static void test_nobody(void)
{
	struct sy_ping ping = {.peer = "127.0.0.1", .count = 5, .gap_us = 1000, .wait_us = 100000};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	struct sy_pongs pongs;
	struct sy_error err;
	double begun = now_s();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 0) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
		ok(false, "a listening socket");
		return;
	}
	ping.port = ntohs(address.sin_port);
	ok(sy_ping(&ping, &pongs, &err) == 0 && pongs.received < 5, "a full queue answers %d of 5",
	   pongs.received);
	ok(now_s() - begun < 10, "and nobody waits for it");
	(void)close(fd);
	ping.peer = "not an address";
	ok(sy_ping(&ping, &pongs, &err) < 0 && strstr(err.text, "no IPv4 or IPv6 address"),
	   "a name is none: %s", err.text);
}

static void test_measure(void)
{
	struct sy_netem spec = {0};
	struct sy_measure measure = {"127.0.0.1", &spec, SY_MEASURE_COUNT, 0, 0};
	struct sy_error err;
	json_t *rtt, *conditions = json_object();
	double min, median, mean, max;

	ok(sy_netem_measure(&measure, &rtt, &err) == 0, "measured");
	min = json_real_value(json_object_get(rtt, "min_s"));
	median = json_real_value(json_object_get(rtt, "median_s"));
	mean = json_real_value(json_object_get(rtt, "mean_s"));
	max = json_real_value(json_object_get(rtt, "max_s"));
	ok(0 < min && min <= median && median <= max && min <= mean && mean <= max, "in order");
	is_int(json_integer_value(json_object_get(rtt, "received")), SY_MEASURE_COUNT, "received");
	ok(json_is_real(json_object_get(rtt, "sd_s")), "with a deviation");
	json_decref(rtt);

	measure.peer = NULL;
	sy_netem_measure_into(conditions, "before", &measure);
	is_string(json_string_value(
		      json_object_get(json_object_get(conditions, "missing"), "rtt.before")),
		  "there is no peer to measure the round-trip time to", "nobody to ask");
	ok(json_is_null(json_object_get(json_object_get(conditions, "rtt"), "before")), "null");
	measure.peer = "127.0.0.1";
	sy_netem_measure_into(conditions, "before", &measure);
	ok(!json_object_get(json_object_get(conditions, "missing"), "rtt.before"),
	   "a reason goes when there is a value");
	json_decref(conditions);
}

/* At a job's end: an answer may take 2 x (1 + 4 x 1) s here, and nobody answers that soon. */
static void test_time_is_short(void)
{
	struct sy_netem spec = {.delay_us = 1000000, .jitter_us = 1000000};
	struct sy_measure measure = {"192.0.2.1", &spec, SY_MEASURE_COUNT, 0, 0};
	json_t *conditions = json_object();
	double begun = now_s();

	measure.until_us = sy_now_us(CLOCK_MONOTONIC) + 10000000;
	sy_netem_measure_into(conditions, "during_end", &measure);
	ok(now_s() - begun < 5, "what may take 10.4 s is not begun within 10 s");
	ok(json_is_null(json_object_get(json_object_get(conditions, "rtt"), "during_end")), "null");
	is_string(json_string_value(
		      json_object_get(json_object_get(conditions, "missing"), "rtt.during_end")),
		  "an answer may take 10.4 s, longer than the job's end may be held up", "why");
	measure.peer = "127.0.0.1";
	measure.until_us += 10000000;
	sy_netem_measure_into(conditions, "during_end", &measure);
	ok(json_is_object(json_object_get(json_object_get(conditions, "rtt"), "during_end")),
	   "within 20 s it is");
	json_decref(conditions);
}

static void test_what_is_asked(void)
{
	struct sy_netem spec;
	struct sy_measure measure = {"127.0.0.1", &spec, SY_MEASURE_COUNT, 0, 0};
	struct sy_error err;
	json_t *rtt;

	(void)sy_netem_parse("delay=1ms,to=10.0.0.0/8", &spec, &err);
	ok(sy_netem_measure(&measure, &rtt, &err) < 0 && json_is_null(rtt), "to= elsewhere");
	is_string(err.text, "127.0.0.1 lies in none of the networks of to=", "says so");
	(void)sy_netem_parse("delay=1ms,to=127.0.0.0/8,port=1", &spec, &err);
	ok(sy_netem_measure(&measure, &rtt, &err) == 0, "port=: TCP");
	is_int(json_integer_value(json_object_get(rtt, "sent")), 10, "no more than 10 connections");
	json_decref(rtt);
	(void)sy_netem_parse("rate=8kbit", &spec, &err);
	ok(sy_netem_measure(&measure, &rtt, &err) == 0, "a low rate");
	is_int(json_integer_value(json_object_get(rtt, "sent")), 5, "is asked little");
	json_decref(rtt);
}

int main(void)
{
	test_answers("127.0.0.1", 0);
	test_answers("::1", 0);
	test_clock_set();
	test_tcp();
	test_nobody();
	test_measure();
	test_time_is_short();
	test_what_is_asked();
	return done_testing();
}
