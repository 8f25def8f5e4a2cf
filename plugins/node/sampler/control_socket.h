/* The control socket of a job's sampler. */
#ifndef STEELYARD_SAMPLER_CONTROL_SOCKET_H
#define STEELYARD_SAMPLER_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/un.h>

#include "base/error.h"
#include "record/record.h"

/* A socket only root can send to: its descriptor, or -1. */
int sy_control_bind(const struct sockaddr_un *address, struct sy_error *err);

/* 0: a sampler listens there; -ECONNREFUSED: one did; another -errno. */
int sy_control_connect(const struct sockaddr_un *address);

/* The control socket, bound with mode 0600, or `given` when that is no -1. Returns -1 without an
 * error when `path` is NULL. */
int sy_control_open(const char *path, int given, struct sy_error *err);

/* When its name was made, which distinguishes it from another one of that name; 0: there is none.
 */
unsigned long long sy_control_made_ns(const char *path);

/* Remove the name of that socket, unless another process has replaced it. */
void sy_control_remove(const struct sy_sampling *sampling);

/* The process that started this sampler was killed, and the job was ended without it: the name of
 * the socket was removed before we came to it, or is that of the job's next start. */
bool sy_control_is_given_up(const struct sy_sampling *sampling);

#endif
