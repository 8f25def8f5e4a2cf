/* What is asked of a sampler: whose job it weighs, how often, and where the record goes. */
#ifndef STEELYARD_RECORD_SAMPLING_H
#define STEELYARD_RECORD_SAMPLING_H

#include <stdbool.h>
#include <sys/types.h>

#include "counters/processes.h"
#include "record/message.h"

#define SY_MAX_ROOTS 64

struct sy_sampling {
	const char *record_dir, *job_id, *node, *control, *root_dir;
	const char *spool_dir;		    /* for records that record_dir cannot have */
	const char *bpf, *bpf_base;	    /* steelyard-bpf ("no": none), where it pins; or NULL */
	const char *run_dir;		    /* of network conditions, or NULL */
	int control_fd;			    /* already bound, or -1 */
	unsigned long long control_made_ns; /* its name; 0: not told */
	int print_fd;			    /* where the record's path goes, or -1 */
	double rate_hz;
	pid_t root[SY_MAX_ROOTS];
	int roots;
	pid_t process; /* that runs already: it and its descendants, to its end; 0: none */
	pid_t watch;   /* 0: nobody */
	pid_t parent;  /* a daemon whose marked children are the job's; 0: none */
	int linger_s;  /* how long to wait for word when he and the job are gone */
	bool has_owner;
	uid_t owner_uid;
	gid_t owner_gid;
	struct sy_marks marks; /* of orphans */
	struct sy_told told;
	char **command; /* or NULL: attached to a job that others start */
};

#endif
