/* AdminComment is everybody's: ours stands in it below one key, and what others wrote stays, to the
 * byte. Pure: no scheduler in here. */
#ifndef STEELYARD_JOB_COMMENT_MERGE_H
#define STEELYARD_JOB_COMMENT_MERGE_H

#include <stdbool.h>

#define SY_ADMIN_COMMENT_MAX 65535 /* Slurm cuts what is longer, without a word */

/* `present` (NULL: nothing) with `own`, a line of JSON, below SY_COMMENT_KEY in the place of what
 * we had written before; to be freed. NULL and `*why` when it has to be left as it is. */
char *sy_comment_merge(const char *present, const char *own, const char **why);

/* What `present` has below our key is of a later moment of the job than `own`. */
bool sy_comment_is_later(const char *present, const char *own);

#endif
