/* A node's power when nothing runs, as its administrator configures it once for each type of
 * node: lines of /etc/steelyard/node.conf,
 *
 *   idle_power gpu* 310    # nodes whose name matches
 *   idle_power 62          # all others
 *
 * The first matching line counts; '#' begins a comment. docs/energy.md says by which meter. */
#ifndef STEELYARD_METERS_IDLE_POWER_SETTING_H
#define STEELYARD_METERS_IDLE_POWER_SETTING_H

#include "base/error.h"

#define SY_NODE_CONF	  "/etc/steelyard/node.conf"
#define SY_IDLE_POWER_MAX 1e6 /* W */

/* The file exists and cannot be used. */
#define SY_IDLE_POWER_FAULT (-2)

/* Watts of a node: 0; -1: not configured; SY_IDLE_POWER_FAULT. `err` has the reason. A fault
 * anywhere in the file makes all of it void, so that a mistyped line never yields another line's
 * value. */
int sy_idle_power_read(int root, const char *node, double *watts, struct sy_error *err);

/* The same of the file's text, which is cut into pieces. */
int sy_idle_power_find(char *text, const char *node, double *watts, struct sy_error *err);

#endif
