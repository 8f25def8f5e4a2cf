/* Options of `sample` that are numbers, as they are typed. */
#ifndef STEELYARD_PROGRAM_SAMPLE_WORDS_H
#define STEELYARD_PROGRAM_SAMPLE_WORDS_H

#include "base/error.h"
#include "record/sampling.h"

int sy_sample_number(const char *option, const char *text, long least, long most, int *value,
		     struct sy_error *err);
/* UID or UID:GID. */
int sy_sample_owner(const char *text, struct sy_sampling *sampling, struct sy_error *err);
/* A program that runs: its id, or a file with its id. */
int sy_sample_process(const char *text, struct sy_sampling *sampling, struct sy_error *err);
int sy_sample_process_file(const char *path, struct sy_sampling *sampling, struct sy_error *err);

#endif
