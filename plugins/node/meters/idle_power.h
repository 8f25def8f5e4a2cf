/* What a node draws when nothing runs, as its administrator says it, once for each type of node:
 * lines of /etc/steelyard/node.conf,
 *
 *   idle_power gpu* 310    # of nodes whose name is like this
 *   idle_power 62          # of all others
 *
 * The first line that fits counts; '#' begins a comment. docs/energy.md says by which meter. */
#ifndef STEELYARD_METERS_IDLE_POWER_H
#define STEELYARD_METERS_IDLE_POWER_H

#include "base/error.h"

#define SY_NODE_CONF	  "/etc/steelyard/node.conf"
#define SY_IDLE_POWER_MAX 1e6 /* W */

/* The file is there and cannot be used. */
#define SY_IDLE_POWER_FAULT (-2)

/* Watts of a node: 0; -1: nobody has said them; SY_IDLE_POWER_FAULT. With why they are not known. A
 * fault anywhere in the file makes all of it void: whoever has written it must not be told another
 * thing. */
int sy_idle_power_read(int root, const char *node, double *watts, struct sy_error *err);

/* The same of the file's text, which is cut into pieces. */
int sy_idle_power_find(char *text, const char *node, double *watts, struct sy_error *err);

#endif
