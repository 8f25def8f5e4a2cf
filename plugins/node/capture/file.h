/* The files of a capture: packets beside the record, what is going on in the run folder. */
#ifndef STEELYARD_CAPTURE_FILE_H
#define STEELYARD_CAPTURE_FILE_H

#include <jansson.h>

#include "capture/dumpcap.h"

/* Make RECORD_DIR/JOB/NODE.START.pcapng, readable by the owner alone: a descriptor, or -1. */
int sy_capture_make(const struct sy_capture *capture, char name[320], struct sy_error *err);

/* RUN_DIR/capture/NODE.JOB.json: it goes on, as long as `*held` is open: a kill -9 closes it too.
 * Nothing without a run folder. */
int sy_capture_begin(const struct sy_capture *capture, const json_t *document, int *held,
		     struct sy_error *err);

/* Tell the capture of a job to end, when it goes on: the state says which process it is, and its
 * lock that the number is still that process's. */
void sy_capture_stop(const char *run_dir, const char *node, const char *job_id);

/* Whether the capture of this state still runs. */
bool sy_capture_is_held(int folder, const char *name);

/* NODE.JOB.done.json in its stead, whole or not at all. */
void sy_capture_done(const struct sy_capture *capture, const json_t *document);

/* What is left when nothing was captured: the state goes. */
void sy_capture_forget(const struct sy_capture *capture);

#endif
