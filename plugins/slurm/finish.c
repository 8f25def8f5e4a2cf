#include "finish.h"

#include "admin_comment.h"
#include "base/file.h"
#include "conditions.h"
#include "job/comment.h"
#include "options.h"

#define ANSWER_LIMIT_MS 2000 /* some ms, but on a node or a disk that is too busy */

bool sy_finish_is_due(const struct sy_step *step)
{
	return step->batch_step || (!step->batch_runs && step->node_index == 0);
}

void sy_finish(spank_t spank, const struct sy_config *config, const struct sy_step *step,
	       struct sy_message_queue *queue)
{
	char answer[SY_MESSAGE_MAX];
	struct sy_totals totals = {0};
	struct sy_comment comment = {.tags = &sy_options.tags,
				     .nodes = sy_step_nodes_of_job(spank),
				     .netem = sy_conditions_netem(),
				     .refused = sy_conditions_refusal(),
				     .so_far = !step->batch_step};
	cleanup_free char *text = NULL;

	/* The last sample would be some of the totals, and nothing would say so. */
	if (sy_queue_request_totals(queue, answer, sizeof(answer), ANSWER_LIMIT_MS) > 0 &&
	    sy_totals_from_json(&totals, answer)) {
		comment.totals = &totals;
		sy_node_kind_from_record(&comment.kind, answer);
	}
	comment.netem_valid = sy_conditions_valid(config, step, totals.other_networks);
	text = sy_comment_short(&comment);
	if (text)
		sy_admin_comment_write(config, step, text);
}
