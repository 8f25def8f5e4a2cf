/* Answers of the kernel by netlink: sockets (sock_diag) and qdiscs. */
#include "fuzz.h"

#include "counters/tcp_rtt.h"
#include "netem/kernel/qdisc_snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sy_qdisc_counters counters = {0};
	struct sy_tcp_socket socket = {0};
	uint8_t *block = malloc(size + !size); /* as aligned as the kernel's answer is */
	int index = 0;

	must(block);
	memcpy(block, data, size);
	if (sy_diag_parse(block, size, &socket) == 0)
		must(size >= sizeof(struct inet_diag_msg));
	if (sy_qdisc_parse((const struct nlmsghdr *)(const void *)block, size, &index, &counters) ==
	    0) {
		must(size >= sizeof(struct nlmsghdr));
		must(memchr(counters.kind, '\0', sizeof(counters.kind)) != NULL);
		must(counters.sent_packets >= 0 && counters.dropped_packets >= 0);
		must(counters.sent_bytes >= 0 && counters.lost >= 0 && counters.corrupted >= 0);
		must(counters.duplicated >= 0 && counters.reordered >= 0 && counters.marked >= 0);
	}
	free(block);
	return 0;
}
