/* Records that their folder cannot have now: it is not mounted, or root may not write there. They
 * go to a folder of this node, if the administrator has made it; contrib/spool sends them on. */
#ifndef STEELYARD_RECORD_SPOOL_H
#define STEELYARD_RECORD_SPOOL_H

#include "base/error.h"
#include "record/file.h"
#include "record/sampling.h"

#define SY_SPOOL_DIR "/var/spool/steelyard"

bool sy_has_spool(const char *spool_dir);

/* As sy_recordfile_open(). Where the spool is there the folder of records must bear its mark; if it
 * does not, or cannot be written to, the record is made in the spool, record_dir of `sampling` is
 * that, and `complain` is told why. */
int sy_recordfile_open_or_spool(struct sy_recordfile *file, struct sy_sampling *sampling,
				void (*complain)(const struct sy_error *), struct sy_error *err);

#endif
