/* The page of memory that the sampler's two processes share. */
#ifndef STEELYARD_SAMPLER_SHARED_MEMORY_H
#define STEELYARD_SAMPLER_SHARED_MEMORY_H

#include <stdatomic.h>

#include "counters/job_connections.h"
#include "meters/readings_to_joules.h"
#include "record/record.h"
#include "sampler/sample_buffer.h"

#define SY_KIND_SIZE 3000 /* with the totals it fits into one answer */

struct sy_shared {
	_Atomic unsigned current; /* which of the two was written whole */
	struct sy_status status[2];
	struct sy_tcp_counts tcp_counts; /* grow only: a reader may be one reading behind */
	struct sy_sample_buffer lines;	 /* of samples */
	char meter_reason[SY_MAX_ZONES]
			 [SY_REASON_SIZE]; /* they have no value; as of the last sample */
	_Atomic size_t notes_used;	   /* messages about the job, each ended by a NUL */
	char notes[SY_NOTES_SIZE];
	_Atomic unsigned kind_current; /* which of the two was written whole */
	char kind[2][SY_KIND_SIZE];    /* the node's kind from the record, for answers */
};

#endif
