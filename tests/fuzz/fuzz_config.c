/* What an administrator says: the file of `steelyard-node job`, and our line in plugstack.conf. */
#include "fuzz.h"

#include "job/config.h"

#include "../../plugins/slurm/config.c"

static char complained[4096];

static void complain(const char *sentence)
{
	(void)snprintf(complained, sizeof(complained), "%s", sentence);
}

static void must_be_path(const char *path)
{
	must(strnlen(path, SY_PATH_SIZE) < SY_PATH_SIZE && (*path == '/' || !*path));
}

static void read_file(const char *text)
{
	static struct sy_job_config config;
	struct sy_error err = {0};

	sy_job_config_init(&config);
	if (sy_job_config_read(&config, file_of(text, strlen(text)), true, &err) < 0)
		must_say_why(&err);
	must_be_path(config.record_dir);
	must_be_path(config.run_dir);
	must_be_path(config.netem_policy);
	must_be_path(config.root);
	must(config.rate_hz >= 0 && config.rate_hz <= 1000 && config.max_rate_hz <= 1000);
	must(strnlen(config.protect, SY_HOSTS_SIZE) < SY_HOSTS_SIZE);
}

static void read_plugstack(char *text)
{
	static struct sy_config config;
	char *words[16];
	int count = 0;

	for (char *word; count < 16 && (word = strsep(&text, " \n"));)
		words[count++] = word;
	sy_config_parse(&config, count, words, complain);
	must_be_path(config.node.record_dir);
	must_be_path(config.node.run_dir);
	must(config.node.rate_hz >= 0 && config.node.rate_hz <= 1000 &&
	     config.node.max_rate_hz <= 1000);
	must(strnlen(config.node.netem_policy, SY_PATH_SIZE) < SY_PATH_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);

	read_file(text);
	read_plugstack(text);
	free(text);
	return 0;
}
