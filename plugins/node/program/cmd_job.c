/* steelyard-node job: what prologues, epilogues and hooks hand over to. */
#include "program/cmd_job.h"
#include "program/command_line.h"
#include "program/commands.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} verbs[] = {
    {"begin", sy_job_begin_command, "a job begins on this node: sampler and conditions"},
    {"attach", sy_job_attach_command, "a process of others' is the job's from now on"},
    {"end", sy_job_end_command, "it ends: conditions undone, its totals printed"},
    {"sweep", sy_job_sweep_command, "undo and finish what jobs that are gone have left"},
    {"check", sy_job_check_command, "whether a user's request will do, before it is queued"},
    {"encode", sy_job_encode_command, "a user's wishes as one word that any scheduler carries"},
};

static int usage(FILE *out, int code)
{
	(void)fprintf(out, "usage: steelyard-node job VERB [OPTIONS]\n\n");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		(void)fprintf(out, "  %-7s %s\n", verbs[i].name, verbs[i].help);
	(void)fprintf(out, "\n'steelyard-node job VERB --help' tells its options.\n");
	return code;
}

int sy_cmd_job(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, SY_EXIT_USAGE);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return usage(stdout, SY_EXIT_DONE);
	/* pbs_mom's 077 would hide records from whose they are; what is root's has its own mode. */
	(void)umask(022);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	return usage(stderr, SY_EXIT_USAGE);
}
