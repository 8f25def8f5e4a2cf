#include "netem/kernel/rtnl.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_SIZE 65536

void sy_rtnl_add(struct sy_rtnl_request *request, unsigned short type, const void *data,
		 size_t size)
{
	size_t used = NLMSG_ALIGN(request->header.nlmsg_len);
	struct rtattr *attribute = (struct rtattr *)((char *)request + used);

	if (used + RTA_SPACE(size) > sizeof(*request))
		return;
	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(RTA_DATA(attribute), data, size);
	request->header.nlmsg_len = (uint32_t)(used + RTA_SPACE(size));
}

static int open_socket(void)
{
	static const struct timeval patience = {.tv_sec = 5};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* 1: that was the last answer; 0: more come; -errno. */
static int look_at(const struct nlmsghdr *header, size_t size,
		   int (*take)(const struct nlmsghdr *header, void *context), void *context)
{
	int result = 0;

	while (!result && size >= sizeof(*header) && header->nlmsg_len >= sizeof(*header) &&
	       header->nlmsg_len <= size) {
		size_t step = NLMSG_ALIGN((size_t)header->nlmsg_len);

		if (header->nlmsg_type == NLMSG_DONE)
			return 1;
		if (header->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *error = NLMSG_DATA(header);

			return error->error ? error->error : 1;
		}
		if (take)
			result = take(header, context);
		size = step < size ? size - step : 0;
		header = (const struct nlmsghdr *)((const char *)header + step);
	}
	return result;
}

int sy_rtnl(const struct sy_rtnl_request *request,
	    int (*take)(const struct nlmsghdr *header, void *context), void *context)
{
	cleanup_close int fd = open_socket();
	cleanup_free char *answer = malloc(ANSWER_SIZE);
	int result = 0;

	if (fd < 0 || !answer)
		return -errno;
	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	while (!result) {
		ssize_t got = recv(fd, answer, ANSWER_SIZE, 0);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			result = look_at((struct nlmsghdr *)answer, (size_t)got, take, context);
	}
	return result < 0 ? result : 0;
}
