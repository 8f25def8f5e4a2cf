/* Cold caches: files that were read before must be read again from where they lie. */
#ifndef STEELYARD_PROGRAM_COLD_CACHE_H
#define STEELYARD_PROGRAM_COLD_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The limit of CVMFS' cache, which CVMFS reads when the cache is wiped. Removed when none is
 * requested. CVMFS reads default.local afterwards, which may overrule it. */
#define SY_CVMFS_LIMIT_FILE "/etc/cvmfs/default.d/99-steelyard.conf"

/* Write all that waits to be written, then drop page cache, dentries and inodes (proc(5),
 * /proc/sys/vm/drop_caches: 3), and look into /proc/meminfo whether they went; where CVMFS is
 * installed, `cvmfs_config wipecache`, with a limit of its cache unless `cvmfs_quota_bytes` is 0;
 * where the job asked for that limit itself (`is_requested`), -1 if it cannot be had.
 * `root`: descriptor of the folder that is used as "/".
 *
 * 0, and `*answer` is `{requested, done, refused, cached_before_bytes, cached_after_bytes}`: lists
 * of words and sentences (refused: what does not make the caches any warmer, such as the limit);
 * pages of files in memory, not tmpfs', null where they are not in /proc/meminfo. -1: not cold. */
int sy_cache_drop(int root, int64_t cvmfs_quota_bytes, bool is_requested, json_t **answer,
		  struct sy_error *err);

#endif
