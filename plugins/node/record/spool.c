#include "record/spool.h"

#include <stdio.h>
#include <sys/stat.h>

bool sy_has_spool(const char *spool_dir)
{
	struct stat info;

	return lstat(spool_dir, &info) == 0 && S_ISDIR(info.st_mode);
}

static int open_in(struct sy_recordfile *file, const struct sy_sampling *sampling, const char *dir,
		   struct sy_error *err)
{
	return sy_recordfile_open(file, dir, sampling->job_id, sampling->node, err);
}

int sy_recordfile_open_or_spool(struct sy_recordfile *file, struct sy_sampling *sampling,
				void (*complain)(const struct sy_error *), struct sy_error *err)
{
	struct sy_error why;

	if (sampling->command || !sampling->spool_dir || !sy_has_spool(sampling->spool_dir))
		return open_in(file, sampling, sampling->record_dir, err);
	if (!sy_records_by_day(sampling->record_dir) &&
	    !sy_records_are_marked_by_owner(sampling->record_dir))
		(void)sy_fail(&why,
			      "%s does not bear its mark %s, a file of its owner's: is it mounted?",
			      sampling->record_dir, SY_RECORDS_MARK);
	else if (open_in(file, sampling, sampling->record_dir, &why) == 0)
		return 0;
	if (open_in(file, sampling, sampling->spool_dir, err) < 0)
		return -1;
	(void)sy_fail(err, "%.300s; the record goes to %.100s", why.text, sampling->spool_dir);
	complain(err);
	sampling->record_dir = sampling->spool_dir;
	return 0;
}
