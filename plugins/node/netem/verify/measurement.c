#include "netem/verify/verify.h"

#include "base/clock.h"
#include "base/json_document.h"
#include "netem/spec/compound_values.h"
#include "netem/spec/values.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define GAP_US	     2000
#define BASE_WAIT_US 400000 /* the farthest places on earth are 300 ms apart */
#define SPREAD_US    300000 /* all are sent within it, so a low rate sees fewer of them */
#define LEAST	     5
#define TCP_MOST     10 /* the listener is not troubled further */
#define TRIES	     3	/* a busy node holds up all echoes at once, for some 10 ms */
#define PAUSE_NS     20000000

static bool is_shaped(const struct sy_netem *spec, const char *peer)
{
	struct sy_network address;

	if (!spec->to_count || sy_parse_network(peer, &address, NULL) < 0)
		return true;
	for (int i = 0; i < spec->to_count; i++)
		if (sy_network_contains(&spec->to[i], &address))
			return true;
	return false;
}

/* Two frames of ours never wait for each other, so that no queue grows at a low rate. */
static void set_pace(const struct sy_measure *measure, struct sy_ping *ping)
{
	const struct sy_netem *spec = measure->spec;
	int64_t frame_bits = 8 * sy_bytes_on_link(&spec->overhead, SY_ECHO_BYTES);
	int64_t frame_us = spec->has_rate ? 1000000LL * frame_bits / spec->rate_bit_per_s : 0;
	int64_t most;

	ping->gap_us = 2 * frame_us > GAP_US ? 2 * frame_us : GAP_US;
	most = SPREAD_US / ping->gap_us > LEAST ? SPREAD_US / ping->gap_us : LEAST;
	if (ping->port && most > TCP_MOST)
		most = TCP_MOST;
	if (ping->count > most)
		ping->count = (int)most;
	ping->wait_us = 2 * (spec->delay_us + 4 * spec->jitter_us + frame_us + spec->slot.max_us) +
			BASE_WAIT_US;
}

/* How long it may take. An answer that is not waited for would count as lost. */
static int64_t find_longest(const struct sy_ping *ping)
{
	return ping->count * ping->gap_us + ping->wait_us;
}

static bool has_time(const struct sy_measure *measure, int64_t takes_us)
{
	return !measure->until_us || sy_now_us(CLOCK_MONOTONIC) + takes_us <= measure->until_us;
}

static json_t *make_seconds(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static double sum_of_squares(const struct sy_pongs *pongs, double mean_s)
{
	double sum = 0;

	for (int i = 0; i < pongs->received; i++)
		sum += (pongs->s[i] - mean_s) * (pongs->s[i] - mean_s);
	return sum;
}

static json_t *make_statistics(const struct sy_pongs *pongs)
{
	int n = pongs->received;
	double mean = 0, sd = NAN;

	for (int i = 0; i < n; i++)
		mean += pongs->s[i] / n;
	if (n > 1)
		sd = sqrt(sum_of_squares(pongs, mean) / (n - 1));
	return json_pack("{s:i,s:i,s:f,s:f,s:f,s:o,s:f}", "sent", pongs->sent, "received", n,
			 "min_s", pongs->s[0], "median_s",
			 (pongs->s[(n - 1) / 2] + pongs->s[n / 2]) / 2, "mean_s", mean, "sd_s",
			 make_seconds(sd), "max_s", pongs->s[n - 1]);
}

static int ping_peer(const struct sy_measure *measure, struct sy_pongs *pongs, struct sy_error *err)
{
	const struct sy_netem *spec = measure->spec;
	struct sy_ping ping = {.peer = measure->peer,
			       .port = spec->port_count ? spec->port[0] : 0,
			       .count = measure->count,
			       .priority = measure->priority};

	if (!measure->peer)
		return sy_fail(err, "there is no peer to measure the round-trip time to");
	if (!is_shaped(spec, measure->peer))
		return sy_fail(err, "%s lies in none of the networks of to=", measure->peer);
	set_pace(measure, &ping);
	if (!has_time(measure, find_longest(&ping)))
		return sy_fail(
		    err, "an answer may take %.1f s, longer than the job's end may be held up",
		    (double)find_longest(&ping) / 1e6);
	if (sy_ping(&ping, pongs, err) < 0)
		return -1;
	if (pongs->received)
		return 0;
	if (ping.port)
		return sy_fail(err,
			       "%s neither accepted nor refused any of %d TCP connections to "
			       "port %d",
			       measure->peer, pongs->sent, ping.port);
	return sy_fail(err, "%s answered none of %d echo requests (ICMP)", measure->peer,
		       pongs->sent);
}

int sy_netem_measure(const struct sy_measure *measure, json_t **rtt, struct sy_error *err)
{
	struct sy_pongs pongs;
	int result = ping_peer(measure, &pongs, err);

	*rtt = result < 0 ? json_null() : make_statistics(&pongs);
	return result;
}

static void add_time(json_t *conditions, double spent_s)
{
	double before_s = json_real_value(json_object_get(conditions, "verify_s"));

	(void)json_object_set_new(conditions, "verify_s", json_real(before_s + spent_s));
}

static void measure_once(struct sy_document *document, const char *moment,
			 const struct sy_measure *measure)
{
	json_t *best = json_object_get(json_object_get(document->top, "rtt"), moment), *rtt;
	struct sy_error err;
	char path[64];

	(void)snprintf(path, sizeof(path), "rtt.%s", moment);
	if (sy_netem_measure(measure, &rtt, &err) == 0) {
		(void)json_object_del(document->missing, path);
		sy_netem_keep_fastest(document->top, measure->spec, moment, rtt);
	} else if (!json_is_object(best)) {
		sy_doc_put_null(document, path, "%s", err.text);
	}
}

void sy_netem_measure_into(json_t *conditions, const char *moment, const struct sy_measure *measure)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct sy_document document = {.top = conditions,
				       .missing = json_object_get(conditions, "missing")};
	double start_s = sy_now_s(CLOCK_MONOTONIC);
	int tries = 1;

	if (!document.missing) {
		document.missing = json_object();
		(void)json_object_set_new(conditions, "missing", document.missing);
	}
	if (!json_is_object(json_object_get(conditions, "rtt")))
		(void)json_object_set_new(conditions, "rtt", json_object());
	(void)json_object_set_new(json_object_get(conditions, "rtt"), moment, json_null());
	measure_once(&document, moment, measure);
	for (; tries < TRIES && has_time(measure, 0) &&
	       !sy_netem_is_rtt_tolerated(conditions, measure->spec, moment);
	     tries++) {
		(void)nanosleep(&pause, NULL);
		measure_once(&document, moment, measure);
	}
	if (tries > 1)
		sy_json_note(conditions, "rtt.%s was measured %d times, the fastest counts", moment,
			     tries);
	add_time(conditions, sy_now_s(CLOCK_MONOTONIC) - start_s);
}
