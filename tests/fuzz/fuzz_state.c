/* Documents in the run folder, which a crash may have cut: states of conditions, and the record
 * that a sampler had begun. */
#include "fuzz.h"

#include <jansson.h>

#include "base/json_document.h"
#include "netem/kernel/qdisc_snapshot.h"
#include "netem/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sy_qdisc_counters counters = {.kind = "netem", .sent_packets = 7};
	cleanup_close int fd = open(file_of(data, size), O_RDONLY | O_CLOEXEC);
	json_t *state = sy_json_read_fd(fd);

	if (json_is_object(state)) {
		(void)sy_state_find_owner(state);
		sy_state_remove_private(state);
		sy_netem_add_counters(state, &counters);
		sy_json_note(state, "a note");
	}
	json_decref(state);
	return 0;
}
