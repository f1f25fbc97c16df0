#include "serve/arena_state.h"

#include "base/process_memory.h"
#include "serve/json_text.h"

namespace headroom {

std::string arena_json(const ServingPlan& plan, const ArenaState& now) {
  Json regions = Json::array();
  for (const ServingRegion& region : plan.regions) regions.push_back({{"name", region.name}, {"bytes", region.bytes}});
  const SchedulerCounts& c = now.counts;
  const Json out = {{"state", now.state},
                    {"models", now.models},
                    {"chat_template", now.chat_template},
                    {"makes_text", !plan.limits.whole_sequences},  // false: an encoder
                    {"max_model_len", plan.limits.positions},
                    {"budget_bytes", plan.plan.budget_bytes},
                    {"planned_peak_bytes", plan.plan.peak_bytes},
                    {"arena_planned_bytes", plan.plan.arena_bytes},
                    {"arena_measured_bytes", now.arena_high_water},
                    {"resident_bytes", resident_bytes()},
                    {"disk_bytes", plan.disk_bytes()},
                    {"regions", std::move(regions)},
                    {"kv_block_tokens", plan.limits.block_tokens},
                    {"kv_blocks", plan.limits.blocks},
                    {"kv_blocks_used", c.blocks_used},
                    {"kv_blocks_kept", c.blocks_kept},
                    {"running", c.running},
                    {"waiting", c.waiting},
                    {"prompt_tokens", c.prompt_tokens},
                    {"generated_tokens", c.drawn_tokens}};
  return json_text(out);
}

}  // namespace headroom
