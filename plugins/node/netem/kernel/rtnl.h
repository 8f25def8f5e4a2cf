/* One request to the kernel's routing socket, and its answers (rtnetlink(7)). */
#ifndef STEELYARD_NETEM_KERNEL_RTNL_H
#define STEELYARD_NETEM_KERNEL_RTNL_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sy_rtnl_request {
	struct nlmsghdr header;
	union { /* attributes follow whichever it is */
		struct tcmsg tc;
		struct ifinfomsg link;
	};
	char attributes[2048];
};

/* Append an attribute; more than there is room for is left out. */
void sy_rtnl_add(struct sy_rtnl_request *request, unsigned short type, const void *data,
		 size_t size);

/* Send, and hand every answer to `take` (NULL: only whether it worked): 0, or -errno. */
int sy_rtnl(const struct sy_rtnl_request *request,
	    int (*take)(const struct nlmsghdr *header, void *context), void *context);

/* Walking attributes; RTA_OK and RTA_NEXT of the kernel's header mix signs. */
static inline bool sy_rta_ok(const struct rtattr *attribute, size_t left)
{
	return left >= sizeof(*attribute) && attribute->rta_len >= sizeof(*attribute) &&
	       attribute->rta_len <= left;
}

static inline const struct rtattr *sy_rta_next(const struct rtattr *attribute, size_t *left)
{
	size_t step = RTA_ALIGN((size_t)attribute->rta_len);

	*left = step < *left ? *left - step : 0;
	return (const struct rtattr *)((const char *)attribute + step);
}

#endif
