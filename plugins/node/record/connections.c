/* The job's TCP connections in a record. */
#include "record/record.h"

#include "base/json_document.h"

#include <stdio.h>
#include <string.h>

/* µs, where there is a value at all: it is never negative. */
static json_t *seconds_or_null(double us)
{
	return us < 0 ? json_null() : json_real(us / 1e6);
}

static const char *missing_rtt_reason(const struct sy_tcp_status *tcp, char *text, size_t size)
{
	if (tcp->failure) {
		(void)snprintf(text, size, "the kernel reports no sockets (inet_diag): %s",
			       strerror(tcp->failure));
		return text;
	}
	if (!tcp->has_answered)
		return "no process of the job was named to the sampler";
	if (!tcp->connections)
		return "no TCP connection of the job to another node was seen in the sampler's "
		       "network namespace";
	return tcp->rtt.readings == 1 ? "there is one reading only"
				      : "the kernel reported no round-trip time of the connections";
}

/* Median and largest value of a window over all readings. */
static void put_window(json_t *record, const char *window, const char *unit,
		       const struct sy_rtt *read, const struct sy_rtt_counts *counts,
		       const char *reason)
{
	bool any = read->readings > 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "tcp.%s_median_%s", window, unit);
	sy_json_put(record, path, any ? json_real(sy_rtt_median_us(read, counts)) : json_null(),
		    reason);
	(void)snprintf(path, sizeof(path), "tcp.%s_max_%s", window, unit);
	sy_json_put(record, path, any ? json_integer(read->max_us) : json_null(), reason);
}

void sy_record_tcp(json_t *record, const struct sy_tcp_status *tcp,
		   const struct sy_tcp_counts *counts)
{
	bool any = tcp->rtt.readings > 0, all = tcp->connections && !tcp->overflowed;
	const struct sy_rtt *rtt = &tcp->rtt;
	char text[160], many[96];
	const char *reason = missing_rtt_reason(tcp, text, sizeof(text));
	const char *total_reason = tcp->overflowed ? many : reason;

	(void)snprintf(many, sizeof(many), "more than %d connections at once: not all were counted",
		       SY_MAX_CONNECTIONS);
	sy_json_put(record, "tcp.source",
		    tcp->has_answered ? json_string("inet_diag") : json_null(), reason);
	sy_json_put(record, "tcp.connections",
		    tcp->has_answered && !tcp->overflowed ? json_integer(tcp->connections)
							  : json_null(),
		    total_reason);
	sy_json_put(record, "tcp.job_retransmitted_segments",
		    all ? json_integer(tcp->retransmitted) : json_null(), total_reason);
	sy_json_put(record, "tcp.rtt_readings",
		    tcp->has_answered ? json_integer(rtt->readings) : json_null(), reason);
	sy_json_put(record, "tcp.rtt_floor_s",
		    seconds_or_null(tcp->floor_us ? tcp->floor_us : -1.0), reason);
	sy_json_put(record, "tcp.rtt_min_s", seconds_or_null(any ? rtt->min_us : -1.0), reason);
	sy_json_put(record, "tcp.rtt_median_s",
		    seconds_or_null(sy_rtt_median_us(rtt, &counts->rtt)), reason);
	sy_json_put(record, "tcp.rtt_mean_s", seconds_or_null(any ? rtt->mean_us : -1.0), reason);
	sy_json_put(record, "tcp.rtt_sd_s", seconds_or_null(sy_rtt_sd_us(rtt)), reason);
	sy_json_put(record, "tcp.rtt_max_s", seconds_or_null(any ? rtt->max_us : -1.0), reason);
	put_window(record, "snd_cwnd", "segments", &tcp->snd_cwnd, &counts->snd_cwnd, reason);
	put_window(record, "rcv_space", "bytes", &tcp->rcv_space_bytes, &counts->rcv_space_bytes,
		   reason);
}

void sy_record_no_tcp(json_t *record, const char *reason)
{
	static const char *const paths[] = {
	    "tcp.source",
	    "tcp.connections",
	    "tcp.job_retransmitted_segments",
	    "tcp.rtt_readings",
	    "tcp.rtt_floor_s",
	    "tcp.rtt_min_s",
	    "tcp.rtt_median_s",
	    "tcp.rtt_mean_s",
	    "tcp.rtt_sd_s",
	    "tcp.rtt_max_s",
	    "tcp.snd_cwnd_median_segments",
	    "tcp.snd_cwnd_max_segments",
	    "tcp.rcv_space_median_bytes",
	    "tcp.rcv_space_max_bytes",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		sy_json_put(record, paths[i], json_null(), reason);
}
