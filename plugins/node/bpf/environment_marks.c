/* A job whose processes are known by a mark in their environment, and by the daemon that starts
 * them. */
#include "bpf/job.h"

#include "base/file.h"
#include "bpf/pins.h"
#include "bpf/system_call.h"

#include <linux/magic.h>
#include <string.h>
#include <unistd.h>

/* The daemon may be registered for another job already. */
static int add_starter(struct sy_bpf *bpf, pid_t daemon, __u64 *number, struct sy_error *err)
{
	struct sy_bpf_request request = {
	    .job = ~bpf->job, .pid = (uint32_t)daemon, .kind = SY_BPF_STARTER};
	int result = sy_bpf_send_request(bpf, SY_BPF_PIN_ADOPT, &request);

	if (result < 0)
		return sy_fail_errno(err, -result, "the kernel does not take process %d",
				     (int)daemon);
	if (request.other_jobs || !request.found)
		return sy_fail(err, request.other_jobs
					? "the daemon that starts the job is of another "
					  "job itself"
					: "the daemon that starts the job is gone");
	*number = request.job;
	return 0;
}

int sy_bpf_mark(struct sy_bpf *bpf, pid_t daemon, const char *mark, uid_t uid, struct sy_error *err)
{
	struct sy_bpf_marked marked = {.job = bpf->job, .uid = uid};
	struct sy_bpf_mark key = {0};
	cleanup_close int marks = sy_bpf_open(bpf->base, "marks");
	int result;

	if (marks < 0)
		return sy_fail(err, "nothing of this release is pinned in %s", bpf->base);
	if (strlen(mark) >= sizeof(key.text))
		return sy_fail(err, "%.60s...: expected less than %zu bytes", mark,
			       sizeof(key.text));
	(void)strcpy(key.text, mark);
	if (add_starter(bpf, daemon, &key.starter, err) < 0)
		return -1;
	result = sy_bpf_update(marks, &key, &marked, 0);
	return result < 0 ? sy_fail_errno(err, -result, "there is no room for the job's mark") : 0;
}

uint64_t sy_bpf_count_unread(const struct sy_bpf *bpf)
{
	const uint32_t zero = 0;
	uint64_t count = 0;

	(void)sy_bpf_lookup(bpf->pin[SY_BPF_PIN_UNREAD], &zero, &count);
	return count;
}
