/* What a run prints, and its JSON document. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "npb_comm.h"

#ifndef SY_VERSION
#define SY_VERSION "unknown"
#endif

/* "1400" or "  64x  64x  32", right-aligned in NPB's 24 columns by the caller. */
static void size_text(const struct npb_run *run, char *text, size_t size)
{
	if (run->size[1] == 0)
		snprintf(text, size, "%" PRId64, run->size[0]);
	else
		snprintf(text, size, "%4" PRId64 "x%4" PRId64 "x%4" PRId64, run->size[0],
			 run->size[1], run->size[2]);
}

/* "x86-64-v4 512 bits", "not used" */
static void vectors_text(const struct npb_run *run, char *text, size_t size)
{
	if (run->vectors.bits)
		snprintf(text, size, "%s %d bits", run->vectors.level, run->vectors.bits);
	else
		snprintf(text, size, "%s", run->vectors.level);
}

void npb_print_heading(const struct npb_kernel *kernel, const struct npb_run *run)
{
	char size[64];

	size_text(run, size, sizeof(size));
	printf("\n\n NAS Parallel Benchmarks, Steelyard %s -- %s Benchmark\n\n", SY_VERSION,
	       kernel->name);
	printf(" Size: %s  (class %c)\n", size, run->class_name);
	printf(" Iterations: %d\n", run->iterations);
	printf(" Number of processes: %d\n", run->ranks);
	vectors_text(run, size, sizeof(size));
	printf(" Vectors: %s\n\n", size);
	fflush(stdout);
}

bool npb_verified(const struct npb_run *run)
{
	return run->checks > 0 && run->failed_checks == 0;
}

static double npb_mops(const struct npb_run *run, const struct npb_times *times)
{
	return times->seconds > 0 ? run->mega_ops / times->seconds : 0;
}

void npb_gather_times(const struct npb_run *run, struct npb_times *times)
{
	enum { FIGURES = 2 + NPB_CALLS };
	double mine[FIGURES], sum[FIGURES] = {0}, most[FIGURES] = {0};

	mine[0] = run->seconds;
	mine[1] = run->compute_s;
	for (int i = 0; i < NPB_CALLS; i++)
		mine[2 + i] = npb_call_time((enum npb_call)i).seconds;
	MPI_Reduce(mine, sum, FIGURES, MPI_DOUBLE, MPI_SUM, 0, run->comm);
	MPI_Reduce(mine, most, FIGURES, MPI_DOUBLE, MPI_MAX, 0, run->comm);
	times->seconds = most[0];
	times->compute_mean_s = sum[1] / run->ranks;
	times->compute_max_s = most[1];
	for (int i = 0; i < NPB_CALLS; i++) {
		const struct npb_call_time own = npb_call_time((enum npb_call)i);

		times->call[i].name = own.name;
		times->call[i].calls = own.calls;
		times->call[i].mean_s = sum[2 + i] / run->ranks;
		times->call[i].max_s = most[2 + i];
	}
}

static void print_checks(const struct npb_run *run)
{
	for (int i = 0; i < run->checks; i++)
		printf(" %-16s %22.15E  official %22.15E  error %9.2E  limit %8.1E  %s\n",
		       run->check[i].name, run->check[i].value, run->check[i].expected,
		       run->check[i].error, run->check[i].limit,
		       run->check[i].passed ? "ok" : "FAILED");
	if (run->failed_checks > 0)
		printf(" %d figures differ from the official values\n", run->failed_checks);
}

/* Two decimals as NASA's; of a slow program they would be a rough figure, or 0. */
static void print_rate(const char *of, double mops)
{
	printf(" Mop/s%s = %24.*f\n", of, mops < 100 ? 6 : 2, mops);
}

void npb_print_closing(const struct npb_kernel *kernel, const struct npb_run *run,
		       const struct npb_times *times)
{
	const double mops = npb_mops(run, times);
	const bool verified = npb_verified(run);
	char size[64];

	size_text(run, size, sizeof(size));
	print_checks(run);
	printf(" VERIFICATION %s\n", verified ? "SUCCESSFUL" : "FAILED");
	printf("\n\n %s Benchmark Completed.\n", kernel->name);
	printf(" Class           = %24c\n", run->class_name);
	printf(" Size            = %24s\n", size);
	printf(" Iterations      = %24d\n", run->iterations);
	printf(" Time in seconds = %24.6f\n", times->seconds);
	printf(" Total processes = %24d\n", run->ranks);
	printf(" Active procs    = %24d\n", run->ranks);
	print_rate(" total    ", mops);
	print_rate("/process  ", mops / run->ranks);
	printf(" Operation type  = %24s\n", kernel->operations);
	vectors_text(run, size, sizeof(size));
	printf(" Vectors         = %24s\n", size);
	printf(" Verification    = %24s\n", verified ? "SUCCESSFUL" : "UNSUCCESSFUL");
	printf(" Version         = %24s\n\n\n", "Steelyard " SY_VERSION);
	fflush(stdout);
}

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
