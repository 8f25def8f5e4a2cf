/* Folders that root writes into while users look on: nothing a user names is followed. */
#ifndef STEELYARD_BASE_FOLDER_H
#define STEELYARD_BASE_FOLDER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/place.h"

/* A word that may be a file's name: not empty, no '/', no control character, not beginning with a
 * dot, at most 200 bytes. */
bool sy_is_file_word(const char *word);

/* 0: the folder is root's or ours, and nobody else can put anything into it. `what`: its name in
 * the message. */
int sy_folder_check(int fd, const char *what, struct sy_error *err);

/* The job's folder below RECORD_DIR for a record that starts now, made when RECORD_DIR is there and
 * it is not: a descriptor, or -1. `place`: where it is below RECORD_DIR (base/place.h). */
int sy_job_folder(const char *record_dir, const char *job_id, const char *node,
		  char place[SY_PLACE_SIZE], struct sy_error *err);

/* The same for what belongs to the node's record of the job: one that started before midnight lies
 * in the folder of the day before. */
int sy_job_folder_of_record(const char *record_dir, const char *job_id, const char *node,
			    struct sy_error *err);

/* Open the folder `name` of `run_dir`, made first if `make`: a descriptor, or -1. */
int sy_folder_below(const char *run_dir, const char *name, bool make, struct sy_error *err);

#endif
