#include "netem/kernel/rtnl.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_SIZE 65536

struct nlmsghdr *sy_rtnl_new(struct sy_rtnl *rtnl, uint16_t type, uint16_t flags, size_t size,
			     void **body)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(rtnl->room);

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	*body = mnl_nlmsg_put_extra_header(request, size);
	return request;
}

static void close_socket(struct mnl_socket **socket)
{
	if (*socket)
		(void)mnl_socket_close(*socket);
}

static struct mnl_socket *open_socket(void)
{
	static const struct timeval patience = {.tv_sec = 5};
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

	if (socket)
		(void)setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_RCVTIMEO, &patience,
				 sizeof(patience));
	return socket;
}

/* A list that changed while it was dumped: ip(8) continues as well. */
static void forgive_changes(char *answer, int size)
{
	struct nlmsghdr *header = (struct nlmsghdr *)answer;

	for (; mnl_nlmsg_ok(header, size); header = mnl_nlmsg_next(header, &size))
		header->nlmsg_flags &= (uint16_t)~NLM_F_DUMP_INTR;
}

int sy_rtnl_request(struct nlmsghdr *request, mnl_cb_t take, void *context)
{
	__attribute__((cleanup(close_socket))) struct mnl_socket *socket = open_socket();
	cleanup_free char *answer = malloc(ANSWER_SIZE);
	int result = MNL_CB_OK;

	if (!socket || !answer || mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		return -errno;
	while (result > MNL_CB_STOP) {
		ssize_t got = mnl_socket_recvfrom(socket, answer, ANSWER_SIZE);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		forgive_changes(answer, (int)got);
		result = mnl_cb_run(answer, (size_t)got, 0, 0, take, context);
	}
	return result < 0 ? -errno : 0;
}

const struct nlattr *sy_rtnl_find(const void *attributes, size_t length, uint16_t type, size_t size)
{
	const char *end = (const char *)attributes + length;
	const struct nlattr *at = attributes;

	for (; mnl_attr_ok(at, (int)(end - (const char *)at)); at = mnl_attr_next(at))
		if (mnl_attr_get_type(at) == type && mnl_attr_get_payload_len(at) >= size)
			return at;
	return NULL;
}

json_t *sy_rtnl_hex(const void *bytes, size_t size)
{
	cleanup_free char *text = calloc(size + 1, 2);

	for (size_t i = 0; text && i < size; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
	return text ? json_string(text) : NULL;
}

size_t sy_rtnl_unhex(const json_t *text, uint8_t *bytes, size_t size)
{
	const char *digits = json_string_value(text);
	size_t count = 0;
	unsigned value;

	while (digits && count < size && sscanf(digits + 2 * count, "%2x", &value) == 1)
		bytes[count++] = (uint8_t)value;
	return count;
}
