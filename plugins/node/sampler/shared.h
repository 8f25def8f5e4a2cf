/* The page of memory that the sampler's two processes share. */
#ifndef STEELYARD_SAMPLER_SHARED_H
#define STEELYARD_SAMPLER_SHARED_H

#include <stdatomic.h>

#include "counters/rtt.h"
#include "record/status.h"
#include "sampler/sample_buffer.h"

struct sy_shared {
	_Atomic unsigned current; /* which of the two was written whole */
	struct sy_status status[2];
	struct sy_rtt_counts rtt_counts; /* grows only: a reader may be one reading behind */
	struct sy_sample_buffer lines;	 /* of samples */
	_Atomic size_t notes_used;	 /* messages about the job, each ended by a NUL */
	char notes[SY_NOTES_SIZE];
};

#endif
