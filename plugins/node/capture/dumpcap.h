/* Headers of packets into a file beside the record, by Wireshark's dumpcap.
 *
 * Root only opens the file: dumpcap writes to it through a descriptor, as nobody, with CAP_NET_RAW
 * and nothing else, and no program of root's ever parses a packet. */
#ifndef STEELYARD_CAPTURE_DUMPCAP_H
#define STEELYARD_CAPTURE_DUMPCAP_H

#include <stdint.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "netem/spec/spec.h"

#define SY_CAPTURE_NETWORKS 40
#define SY_CAPTURE_FILTER   4096

struct sy_capture {
	const char *record_dir, *node, *job_id; /* RECORD_DIR/JOB/NODE.START.pcapng */
	const char *run_dir; /* RUN_DIR/capture/NODE.JOB.json, .done.json; or NULL */
	const char *device;  /* NULL: the node's uplinks */
	int64_t max_bytes;   /* of the file, at least 10,000 */
	int snap_bytes;	     /* of each packet */
	pid_t watch;	     /* ends with this process; 0: by SIGTERM alone */
	bool has_owner;
	uid_t owner_uid;
	gid_t owner_gid;
	int only_count, protect_count; /* packets to or from one of `only`, none of `protect` */
	struct sy_network only[SY_CAPTURE_NETWORKS], protect[SY_CAPTURE_NETWORKS];
};

/* pcap-filter(7): IP only, ssh and the protected networks never. `text` holds SY_CAPTURE_FILTER; -1
 * when it does not fit. */
int sy_capture_filter(const struct sy_capture *capture, char *text);

/* Capture until the watched process has ended, SIGTERM or SIGINT, or the file is full. `ready` is
 * called once packets are being taken, with the document so far (docs/formats.md part 9:
 * `capture`), which is finished by the time this returns 0.
 * -1: nothing was captured, `*missing` when dumpcap is not installed. */
int sy_capture_run(const struct sy_capture *capture, void (*ready)(const char *document),
		   bool *missing, struct sy_error *err);

#endif
