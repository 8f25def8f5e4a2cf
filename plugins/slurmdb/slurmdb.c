/* `steelyard-slurmdb`: its help says what it does. */
#include <stdio.h>
#include <string.h>

#include <slurm/slurm.h>

#include "cores.h"
#include "job_end.h"
#include "publish.h"

#define EXIT_USAGE 2

static const char help[] =
    "usage: steelyard-slurmdb [--job-end] <JSON\n"
    "       steelyard-slurmdb --cores NODE\n"
    "\n"
    "The one program that writes AdminComment, and joules, into Slurm's accounting. Its\n"
    "value is in the key \"steelyard\" of a JSON object. What others wrote there is kept, and\n"
    "text that is no object is not changed.\n"
    "\n"
    "Without an option: of jobs that are over, into slurmdbd, all over one connection.\n"
    "`steelyard publish` calls it. A line of JSON each on stdin: {\"cluster\": \"c\", \"job_id\": "
    "7,\n"
    "\"array_task_id\": 1, \"submit_unix_s\": 5, \"own\": \"{…}\", \"energy_j\": 5}, the last four "
    "if "
    "there\n"
    "are any; own: our value, as text. A line on stdout for it: {\"modified\": 1}, 0 where it was\n"
    "so already; {\"left\": WHY}, the comment is left as it is; or {\"error\": WHY}. Slurm writes "
    "to\n"
    "the last start of the last job of an id: where that was not submitted then, nothing is\n"
    "written. A component of a heterogeneous job is named by its own id. Exit code 3: slurmdbd\n"
    "does not answer.\n"
    "\n"
    "--job-end: of a job that ends, into slurmctld. The plugin starts it. One line of JSON on "
    "stdin:\n"
    "{\"job_id\": 7, \"batch\": true, \"own\": \"{…}\"}. It tries for a minute, and states the "
    "result "
    "in\n"
    "one line on stdout, or on stderr where nobody reads it there.\n"
    "\n"
    "--cores NODE: how many of the node's cores jobs may have. The plugin asks it once.\n";

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";

	if (argc == 2 && !strcmp(option, "--help")) {
		(void)fputs(help, stdout);
		return 0;
	}
	if (argc == 2 && !strcmp(option, "--job-end"))
		return sy_job_end();
	if (argc == 3 && !strcmp(option, "--cores"))
		return sy_print_cores(argv[2]);
	if (argc == 1)
		return sy_publish();
	(void)fputs(help, stderr);
	return EXIT_USAGE;
}
