/* What the kernel's program leaves for a sampler in the memory that both have: whatever stands in
 * it, readings are taken in their order, each once, and a ring that has gone round ends. */
#include "fuzz.h"

#include "bpf/job.h"

static struct sy_bpf_job job;
static struct sy_bpf bpf;
static uint64_t next;
static int64_t taken;

/* Which one it is, its moment says: as it was put there. */
static void take(void *context, const struct sy_bpf_tick *tick)
{
	(void)context;
	must(tick->at_ns % SY_BPF_TICKS == next % SY_BPF_TICKS || !tick->at_ns);
	next++;
	taken++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t counts[2] = {0};
	int64_t lost;

	if (size < sizeof(counts))
		return 0;
	memcpy(counts, data, sizeof(counts));
	memset(&job, 0, sizeof(job));
	for (uint64_t i = 0; i < SY_BPF_TICKS; i++)
		job.tick[i].at_ns = i;
	bpf = (struct sy_bpf){.mapped = &job, .taken = counts[0], .processors = 1};
	job.ticks = counts[1];
	taken = 0;
	if (counts[1] <= counts[0]) {
		must(sy_bpf_read_ticks(&bpf, take, NULL) == 0 && !taken);
		return 0;
	}
	/* The oldest one of a full ring may be written over meanwhile. */
	next = counts[1] - counts[0] >= SY_BPF_TICKS ? counts[1] - SY_BPF_TICKS + 1 : counts[0];
	lost = sy_bpf_read_ticks(&bpf, take, NULL);
	must((uint64_t)lost + (uint64_t)taken == counts[1] - counts[0] || lost == INT64_MAX);
	must(bpf.taken == counts[1] && taken < SY_BPF_TICKS);
	return 0;
}
