/* Folders that root writes into while users look on: nothing a user names is followed. */
#ifndef STEELYARD_BASE_TRUSTED_FOLDER_H
#define STEELYARD_BASE_TRUSTED_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/error.h"

/* A word that may be a file's name: not empty, no '/', no control character, not beginning with a
 * dot, at most 200 bytes. */
bool sy_is_file_word(const char *word);

/* 0: the folder is root's or ours, and nobody else can put anything into it. `what`: its name in
 * the message. */
int sy_folder_check(int fd, const char *what, struct sy_error *err);

/* Open the folder `name` of `run_dir`, made first if `make`: a descriptor, or -1. */
int sy_folder_below(const char *run_dir, const char *name, bool make, struct sy_error *err);

#endif
