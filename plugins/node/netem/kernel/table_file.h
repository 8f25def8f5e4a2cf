/* Files in /etc/steelyard/netem that conditions name: delay tables, traces. */
#ifndef STEELYARD_NETEM_KERNEL_TABLE_FILE_H
#define STEELYARD_NETEM_KERNEL_TABLE_FILE_H

#include "base/error.h"

/* Open one for reading. It has to be root's (or of whoever runs this) alone to change, as all that
 * root is told by, and of less than `most` bytes. `what` it is and `maker`, who makes one (": …",
 * may be empty), are for the words. A descriptor, or -1. */
int sy_table_file_open(const char *path, const char *what, const char *maker, int most,
		       struct sy_error *err);

#endif
