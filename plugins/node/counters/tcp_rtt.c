#include "counters/tcp_rtt.h"

#include "base/kernel_uapi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define SLOT 1024U /* an answer takes 408 bytes on Linux 6.18 */

/* Established, fin-wait-1, fin-wait-2, close-wait: a process holds the connection. Numbers as in
 * the kernel's include/net/tcp_states.h. */
#define STATES (1U << 1 | 1U << 4 | 1U << 5 | 1U << 8)

static char buffer[SLOT * SY_DIAG_QUERY_MAX] __attribute__((aligned(8)));

struct request {
	struct nlmsghdr header;
	struct inet_diag_req body;
};

int sy_diag_open(struct sy_error *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	return fd < 0 ? sy_fail_errno(err, errno, "the kernel reports no sockets (sock_diag)") : fd;
}

/* The older request (before SOCK_DIAG_BY_FAMILY): it alone lists both families in one walk, see
 * inet_diag_dump_compat() in net/ipv4/inet_diag.c. */
static struct request new_request(unsigned flags)
{
	return (struct request){
	    .header = {.nlmsg_len = sizeof(struct request),
		       .nlmsg_type = TCPDIAG_GETSOCK,
		       .nlmsg_flags = (__u16)(NLM_F_REQUEST | flags)},
	    .body = {.idiag_ext = 1 << (INET_DIAG_INFO - 1), .idiag_states = STATES}};
}

/* Byte code that the kernel runs for each socket: "to this network: jump behind the end", which
 * refuses it (inet_diag_bc_run()). The offsets of the refusals are filled in by end_filter(). */
static size_t add_refusal(char *code, size_t at, const struct inet_diag_hostcond *to,
			  const void *address, size_t address_size)
{
	size_t size = sizeof(struct inet_diag_bc_op) + sizeof(*to) + address_size;
	struct inet_diag_bc_op match = {.code = INET_DIAG_BC_D_COND,
					.yes = (unsigned char)size,
					.no = (unsigned short)(size + sizeof(match))};
	struct inet_diag_bc_op out = {.code = INET_DIAG_BC_JMP, .yes = sizeof(out)};

	memcpy(code + at, &match, sizeof(match));
	memcpy(code + at + sizeof(match), to, sizeof(*to));
	memcpy(code + at + sizeof(match) + sizeof(*to), address, address_size);
	memcpy(code + at + size, &out, sizeof(out));
	return at + size + sizeof(out);
}

static void end_filter(char *code, size_t size)
{
	struct inet_diag_bc_op op;

	for (size_t at = 0; at < size; at += op.yes) {
		memcpy(&op, code + at, sizeof(op));
		if (op.code != INET_DIAG_BC_JMP)
			continue;
		op.no = (unsigned short)(size - at + sizeof(op));
		memcpy(code + at, &op, sizeof(op));
	}
}

/* 127.0.0.0/8 matches such addresses within IPv6 as well. */
static size_t make_filter(char *code)
{
	struct inet_diag_hostcond v4 = {.family = AF_INET, .prefix_len = 8, .port = -1};
	struct inet_diag_hostcond v6 = {.family = AF_INET6, .prefix_len = 128, .port = -1};
	struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
	size_t size = add_refusal(code, 0, &v4, &loopback, sizeof(loopback));

	size = add_refusal(code, size, &v6, &in6addr_loopback, sizeof(in6addr_loopback));
	end_filter(code, size);
	return size;
}

static void parse_info(struct sy_tcp_socket *socket, const void *data, size_t size)
{
	struct tcp_info info = {0}; /* older kernels fill less of it */

	memcpy(&info, data, size < sizeof(info) ? size : sizeof(info));
	socket->rtt_us = info.tcpi_rtt;
	socket->min_rtt_us = info.tcpi_min_rtt == UINT32_MAX ? 0 : info.tcpi_min_rtt;
	socket->retransmitted = info.tcpi_total_retrans;
	socket->acked_bytes = info.tcpi_bytes_acked;
	socket->received_bytes = info.tcpi_bytes_received;
	socket->snd_cwnd = info.tcpi_snd_cwnd;
	socket->rcv_space_bytes = info.tcpi_rcv_space;
}

static void parse_attribute(struct sy_tcp_socket *socket, const struct nlattr *attribute)
{
	size_t size = mnl_attr_get_payload_len(attribute);

	if (attribute->nla_type == INET_DIAG_INFO)
		parse_info(socket, mnl_attr_get_payload(attribute), size);
	else if (attribute->nla_type == SY_INET_DIAG_CGROUP_ID && size == sizeof(uint64_t))
		socket->cgroup_id = mnl_attr_get_u64(attribute);
}

int sy_diag_parse(const void *answer, size_t size, struct sy_tcp_socket *socket)
{
	const char *end = (const char *)answer + size;
	const struct nlattr *at;
	struct inet_diag_msg message;

	if (size < sizeof(message))
		return -1;
	memcpy(&message, answer, sizeof(message));
	*socket = (struct sy_tcp_socket){.id = message.id,
					 .family = message.idiag_family,
					 .uid = message.idiag_uid,
					 .inode = message.idiag_inode};
	socket->same_node =
	    !memcmp(message.id.idiag_src, message.id.idiag_dst,
		    socket->family == AF_INET ? sizeof(__be32) : sizeof(message.id.idiag_dst));
	at = (const void *)((const char *)answer + sizeof(message));
	for (; mnl_attr_ok(at, (int)(end - (const char *)at)); at = mnl_attr_next(at))
		parse_attribute(socket, at);
	return 0;
}

struct sight {
	sy_diag_visit *visit;
	void *context;
};

static int parse_message(const struct nlmsghdr *header, void *context)
{
	struct sight *sight = context;
	struct sy_tcp_socket socket;

	if (sy_diag_parse(mnl_nlmsg_get_payload(header), mnl_nlmsg_get_payload_len(header),
			  &socket) == 0)
		sight->visit(sight->context, (int)header->nlmsg_seq, &socket);
	return MNL_CB_OK;
}

/* MNL_CB_STOP when the datagram has the last message of a list, else MNL_CB_OK, or -errno. */
static int parse_datagram(const char *data, size_t size, struct sight *sight)
{
	int result = mnl_cb_run(data, size, 0, 0, parse_message, sight);

	return result < 0 ? -errno : result;
}

int sy_diag_list(int fd, sy_diag_visit *visit, void *context)
{
	struct request request = new_request(NLM_F_DUMP);
	char code[128] __attribute__((aligned(4)));
	struct nlattr filter = {.nla_type = INET_DIAG_REQ_BYTECODE};
	struct iovec parts[] = {{&request, sizeof(request)}, {&filter, sizeof(filter)}, {code, 0}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
	struct sight sight = {visit, context};
	int result = MNL_CB_OK;

	parts[2].iov_len = make_filter(code);
	filter.nla_len = (__u16)(sizeof(filter) + parts[2].iov_len);
	request.header.nlmsg_len += filter.nla_len;
	if (sendmsg(fd, &message, 0) < 0)
		return -errno;
	while (result > MNL_CB_STOP) {
		ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		if (got <= 0)
			return got < 0 ? -errno : -EBADMSG;
		result = parse_datagram(buffer, (size_t)got, &sight);
	}
	return result;
}

int sy_diag_query(int fd, const struct sy_tcp_socket *const known[], int count,
		  sy_diag_visit *visit, void *context)
{
	struct request requests[SY_DIAG_QUERY_MAX];
	struct iovec slots[SY_DIAG_QUERY_MAX];
	struct mmsghdr answers[SY_DIAG_QUERY_MAX];
	struct sight sight = {visit, context};
	int got;

	memset(answers, 0, sizeof(answers));
	for (int i = 0; i < count; i++) {
		requests[i] = new_request(0);
		requests[i].header.nlmsg_seq = (__u32)i;
		requests[i].body.idiag_family = known[i]->family;
		requests[i].body.id = known[i]->id;
		slots[i] = (struct iovec){buffer + SLOT * (size_t)i, SLOT};
		answers[i].msg_hdr.msg_iov = &slots[i];
		answers[i].msg_hdr.msg_iovlen = 1;
	}
	if (send(fd, requests, sizeof(requests[0]) * (size_t)count, 0) < 0)
		return -errno;
	/* The kernel has answered when send() returns; one that is gone is answered by an error. */
	got = recvmmsg(fd, answers, (unsigned)count, MSG_DONTWAIT, NULL);
	for (int i = 0; i < got; i++)
		(void)parse_datagram(slots[i].iov_base, answers[i].msg_len, &sight);
	return got < 0 ? -errno : 0;
}

#define STEPS 64U /* buckets an octave */

static unsigned shift_of(uint32_t us)
{
	return us < 2 * STEPS ? 0 : 25U - (unsigned)__builtin_clz(us);
}

static unsigned bucket_of(uint32_t us)
{
	unsigned shift = shift_of(us);

	return STEPS * shift + (us >> shift);
}

/* The middle of a bucket, µs. */
static double middle_of(unsigned bucket)
{
	unsigned shift = bucket < 2 * STEPS ? 0 : bucket / STEPS - 1;
	double low = (double)((uint64_t)(bucket - STEPS * shift) << shift);

	return low + ((double)(1U << shift) - 1) / 2;
}

void sy_rtt_add(struct sy_rtt *rtt, struct sy_rtt_counts *counts, uint32_t us)
{
	double before = (double)us - rtt->mean_us;

	if (rtt->readings == 0 || us < rtt->min_us)
		rtt->min_us = us;
	if (us > rtt->max_us)
		rtt->max_us = us;
	rtt->readings++;
	rtt->mean_us += before / (double)rtt->readings;
	rtt->squares += before * ((double)us - rtt->mean_us);
	counts->count[bucket_of(us)]++;
}

double sy_rtt_sd_us(const struct sy_rtt *rtt)
{
	return rtt->readings < 2 ? -1 : sqrt(rtt->squares / (double)(rtt->readings - 1));
}

/* The bucket of the reading of that rank, from 0. */
static unsigned bucket_at(const struct sy_rtt_counts *counts, int64_t rank)
{
	unsigned bucket = 0;

	for (int64_t counted = counts->count[0]; counted <= rank && bucket < SY_RTT_BUCKETS - 1;)
		counted += counts->count[++bucket];
	return bucket;
}

double sy_rtt_median_us(const struct sy_rtt *rtt, const struct sy_rtt_counts *counts)
{
	double median;

	if (rtt->readings == 0)
		return -1;
	median = (middle_of(bucket_at(counts, (rtt->readings - 1) / 2)) +
		  middle_of(bucket_at(counts, rtt->readings / 2))) /
		 2;
	return fmin(fmax(median, rtt->min_us), rtt->max_us);
}
