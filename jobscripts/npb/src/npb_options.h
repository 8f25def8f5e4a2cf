/*
 * The command line of every kernel: npb-cg --class A [--json FILE].
 */
#ifndef NPB_OPTIONS_H
#define NPB_OPTIONS_H

#include "npb.h"

struct npb_options {
	enum npb_class class;
	const char *json; /* NULL: none asked for */
	bool help, version;
};

/* True, or false with one line in `message`: what was expected, what was found. */
bool npb_parse_options(int argc, char **argv, struct npb_options *options, char *message,
		       size_t size);
/* Whether the kernel runs with so many ranks; else false and the line. */
bool npb_check_ranks(const struct npb_kernel *kernel, enum npb_class class, int ranks,
		     char *message, size_t size);
/* 'S', 'W' ... */
char npb_class_name(enum npb_class class);

#endif
