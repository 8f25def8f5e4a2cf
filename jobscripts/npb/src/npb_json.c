#include "npb_comm.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#ifndef SY_VERSION
#define SY_VERSION "unknown"
#endif

/* JSON has no NaN: what is no number is null. */
static void number(FILE *file, double value)
{
	if (isfinite(value))
		fprintf(file, "%.17g", value);
	else
		fputs("null", file);
}

static void field(FILE *file, const char *name, double value)
{
	fprintf(file, "\"%s\":", name);
	number(file, value);
}

static void write_checks(FILE *file, const struct npb_run *run)
{
	fputs("\"verification\":[", file);
	for (int i = 0; i < run->checks; i++) {
		fprintf(file, "%s{\"name\":\"%s\",", i ? "," : "", run->check[i].name);
		field(file, "value", run->check[i].value);
		fputc(',', file);
		field(file, "expected", run->check[i].expected);
		fputc(',', file);
		field(file, "error", run->check[i].error);
		fputc(',', file);
		field(file, "limit", run->check[i].limit);
		fprintf(file, ",\"passed\":%s}", run->check[i].passed ? "true" : "false");
	}
	fputs("],", file);
}

static void write_phases(FILE *file, const struct npb_times *times)
{
	fputs("\"phases\":{\"compute\":{", file);
	field(file, "mean_s", times->compute_mean_s);
	fputc(',', file);
	field(file, "max_s", times->compute_max_s);
	fputc('}', file);
	for (int i = 0; i < NPB_CALLS; i++) {
		if (times->call[i].calls == 0)
			continue;
		fprintf(file, ",\"%s\":{\"calls\":%" PRId64 ",", times->call[i].name,
			times->call[i].calls);
		field(file, "mean_s", times->call[i].mean_s);
		fputc(',', file);
		field(file, "max_s", times->call[i].max_s);
		fputc('}', file);
	}
	fputs("},", file);
}

static void write_document(FILE *file, const struct npb_kernel *kernel, const struct npb_run *run,
			   const struct npb_times *times)
{
	const double mops = npb_mops(run, times);

	fprintf(file, "{\"format\":\"steelyard-npb\",\"version\":1,\"steelyard\":\"%s\",",
		SY_VERSION);
	fprintf(file, "\"kernel\":\"%s\",\"class\":\"%c\",\"ranks\":%d,\"iterations\":%d,",
		kernel->name, run->class_name, run->ranks, run->iterations);
	fprintf(file, "\"size\":[%" PRId64, run->size[0]);
	for (int i = 1; i < 3 && run->size[1] != 0; i++)
		fprintf(file, ",%" PRId64, run->size[i]);
	fputs("],", file);
	fprintf(file, "\"vectors\":{\"level\":\"%s\",\"bits\":%d},", run->vectors.level,
		run->vectors.bits);
	field(file, "seconds", times->seconds);
	fputc(',', file);
	field(file, "mops", mops);
	fputc(',', file);
	field(file, "mops_per_process", mops / run->ranks);
	fprintf(file, ",\"verified\":%s,\"failed_checks\":%d,",
		npb_verified(run) ? "true" : "false", run->failed_checks);
	write_checks(file, run);
	write_phases(file, times);
	fputs("\"residuals\":[", file);
	for (int i = 0; i < run->residuals; i++) {
		if (i > 0)
			fputc(',', file);
		number(file, run->residual[i]);
	}
	fputs("]}\n", file);
}

bool npb_write_json(const char *path, const struct npb_kernel *kernel, const struct npb_run *run,
		    const struct npb_times *times)
{
	char temporary[4096];
	bool written;
	FILE *file;

	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid()) >=
	    sizeof(temporary)) {
		errno = ENAMETOOLONG;
		return false;
	}
	file = fopen(temporary, "w");
	if (!file)
		return false;
	write_document(file, kernel, run, times);
	written = fflush(file) == 0 && fsync(fileno(file)) == 0 && !ferror(file);
	if (fclose(file) != 0 || !written || rename(temporary, path) != 0) {
		const int why = errno;

		unlink(temporary);
		errno = why;
		return false;
	}
	return true;
}
