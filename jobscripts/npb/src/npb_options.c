#include "npb.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char class_names[] = "SWABCD"; /* the order of enum npb_class */

char npb_class_name(enum npb_class class)
{
	return class_names[class];
}

__attribute__((format(printf, 3, 4))) static bool refuse(char *message, size_t size,
							 const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(message, size, format, list);
	va_end(list);
	return false;
}

/* Lower case is taken too. */
static bool parse_class(const char *text, struct npb_options *options, char *message, size_t size)
{
	const char upper = (char)(text[0] >= 'a' && text[0] <= 'z' ? text[0] - 'a' + 'A' : text[0]);
	const char *found = upper ? strchr(class_names, upper) : NULL;

	if (!found || text[1] != '\0')
		return refuse(message, size, "class '%.40s': expected one of S, W, A, B, C, D",
			      text);
	options->class = (enum npb_class)(found - class_names);
	return true;
}

/* `--name VALUE` or `--name=VALUE`; NULL when it is not this option. */
static const char *value_of(const char *name, char **argv, int *i)
{
	const size_t length = strlen(name);

	if (strncmp(argv[*i], name, length) != 0)
		return NULL;
	if (argv[*i][length] == '=')
		return argv[*i] + length + 1;
	if (argv[*i][length] != '\0')
		return NULL;
	return argv[*i + 1] ? argv[++*i] : "";
}

bool npb_parse_options(int argc, char **argv, struct npb_options *options, char *message,
		       size_t size)
{
	bool have_class = false;
	const char *value;

	*options = (struct npb_options){0};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "--version") == 0) {
			options->help = argv[i][2] == 'h';
			options->version = argv[i][2] == 'v';
			return true;
		}
		if ((value = value_of("--class", argv, &i))) {
			if (!parse_class(value, options, message, size))
				return false;
			have_class = true;
		} else if ((value = value_of("--json", argv, &i))) {
			if (!value[0])
				return refuse(message, size, "--json needs the name of a file");
			options->json = value;
		} else {
			return refuse(message, size,
				      "unknown argument '%.80s': expected --class and --json",
				      argv[i]);
		}
	}
	if (!have_class)
		return refuse(message, size, "--class is missing: one of S, W, A, B, C, D");
	return true;
}

static bool is_square(int n)
{
	int root = 0;

	while (root * root < n)
		root++;
	return root * root == n;
}

bool npb_check_ranks(const struct npb_kernel *kernel, enum npb_class class, int ranks,
		     char *message, size_t size)
{
	const int most = kernel->most_ranks(class);

	if (kernel->rule == NPB_POWER_OF_TWO && (ranks & (ranks - 1)) != 0)
		return refuse(message, size,
			      "%d ranks: expected a power of two (1, 2, 4, 8, 16 ...)", ranks);
	if (kernel->rule == NPB_SQUARE && !is_square(ranks))
		return refuse(message, size, "%d ranks: expected a square (1, 4, 9, 16, 25 ...)",
			      ranks);
	if (ranks > most)
		return refuse(message, size, "%d ranks: class %c can be shared out to at most %d",
			      ranks, npb_class_name(class), most);
	return true;
}
