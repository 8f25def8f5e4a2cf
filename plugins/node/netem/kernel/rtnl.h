/* One request to the kernel's routing socket, and its answers (rtnetlink(7), libmnl). */
#ifndef STEELYARD_NETEM_KERNEL_RTNL_H
#define STEELYARD_NETEM_KERNEL_RTNL_H

#include <jansson.h>
#include <libmnl/libmnl.h>
#include <stdint.h>

/* Room in which a request is built. */
struct sy_rtnl {
	_Alignas(struct nlmsghdr) char room[4096];
};

/* A new request, of a type such as RTM_GETQDISC; `*body`, of this size, is zeroed and follows the
 * header; attributes come behind it by mnl_attr_put(). */
struct nlmsghdr *sy_rtnl_new(struct sy_rtnl *rtnl, uint16_t type, uint16_t flags, size_t size,
			     void **body);

/* Send, and hand every answer to `take` (NULL: only whether it worked): 0, or -errno. */
int sy_rtnl_request(struct nlmsghdr *request, mnl_cb_t take, void *context);

/* An attribute of this type with at least `size` bytes among `length` bytes of them, or NULL. */
const struct nlattr *sy_rtnl_find(const void *attributes, size_t length, uint16_t type,
				  size_t size);

/* Bytes as text for the state, and back: how many. */
json_t *sy_rtnl_hex(const void *bytes, size_t size);
size_t sy_rtnl_unhex(const json_t *text, uint8_t *bytes, size_t size);

#endif
