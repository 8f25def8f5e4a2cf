/* `steelyard-slurmdb`: see its help. */
#include <stdio.h>
#include <string.h>

#include <slurm/slurm.h>

#include "base/descriptors.h"
#include "slurmdb.h"

static const char help[] =
    "usage: steelyard-slurmdb [--job-end] <JSON\n"
    "       steelyard-slurmdb --cores NODE\n"
    "\n"
    "Writes AdminComment, and joules, into Slurm's accounting; no other program of\n"
    "Steelyard does. Steelyard's value is the key \"steelyard\" of a JSON object.\n"
    "Other keys stay. A comment that is not a JSON object is not changed.\n"
    "\n"
    "Without an option it writes ended jobs into slurmdbd, over one connection, for\n"
    "`steelyard publish`. It reads a line of JSON for each job on stdin:\n"
    "  {\"cluster\": \"c\", \"job_id\": 7, \"array_task_id\": 1, \"submit_unix_s\": 5,\n"
    "   \"own\": \"{…}\", \"energy_j\": 5}\n"
    "The last four are optional; \"own\" is Steelyard's value, as text. It prints a\n"
    "line for each:\n"
    "  {\"modified\": 1}      or 0 if nothing differed\n"
    "  {\"modified\": 0, \"unchanged\": REASON}  the comment was not touched\n"
    "  {\"error\": REASON}    nothing was written\n"
    "Slurm writes to the last start of the last job with an id: if that has another\n"
    "submission time, nothing is written. A component of a heterogeneous job has\n"
    "its own id. Exit code 3: slurmdbd does not answer.\n"
    "\n"
    "--job-end writes an ending job into slurmctld, for the plugin. It reads\n"
    "  {\"job_id\": 7, \"batch\": true, \"own\": \"{…}\"}\n"
    "on stdin, tries for a minute, and prints the result on stdout, or on stderr if\n"
    "nobody reads stdout any longer.\n"
    "\n"
    "--cores NODE prints how many of the node's cores jobs may use. The plugin\n"
    "calls it once.\n";

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";

	sy_open_streams();
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
	return SY_SLURMDB_USAGE;
}
