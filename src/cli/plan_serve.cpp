#include "cli/plan_serve.h"

#include <algorithm>
#include <iostream>

#include "base/bytes.h"
#include "base/count_text.h"
#include "base/error.h"
#include "cli/messages.h"
#include "cli/refuse.h"
#include "cli/terminal.h"
#include "engine/budget.h"
#include "formats/ordered_json.h"
#include "serve/server.h"

namespace headroom {
namespace {

constexpr int64_t kMoreBytes = int64_t{1} << 30;

std::string holds_text(const ServingPlan& serving) {
  const StepLimits& l = serving.limits;
  const int64_t full = std::max<int64_t>(1, l.blocks / std::max<int64_t>(1, l.table_blocks));
  return fmt::format("{} tokens in {} blocks of {}: {} sequence{} of {} tokens at once", serving.pool_tokens(),
                     l.blocks, l.block_tokens, full, full == 1 ? "" : "s", l.positions);
}

// In the spelling of --kv-cache-dtype.
std::string_view cache_text(DType cache) { return cache == DType::i8 ? "int8" : dtype_name(cache); }

std::string park_text(const ServingPlan& serving) {
  const int64_t slots = serving.limits.park_slots;
  return fmt::format("admission balanced: room for {} blocks of parked sequences, {} bytes {}\n", slots,
                     serving.park_bytes(),
                     serving.parks_on_disk ? "of a file in " + serving.park_directory.string() : "in memory");
}

std::string bytes_line(std::string_view what, int64_t bytes) {
  return fmt::format("  {:<22}{:>12}  {:>15} bytes\n", what, format_bytes(bytes), bytes);
}

// Where the weights are that the device does not hold, and what a step copies of them.
std::string streamed_text(const ServingPlan& serving) {
  const StreamedWeights& streamed = serving.streamed;
  if (streamed.below_bytes == 0) return {};
  return bytes_line("weights below", streamed.below_bytes) + bytes_line("copied by a step", streamed.step_bytes) +
         fmt::format("{}; predicted {:.3g} s for a step of one token\n", serving.placement, serving.plan.step_seconds);
}

std::string serving_json(const ServingPlan& serving) {
  const StepLimits& l = serving.limits;
  OrderedJson regions = OrderedJson::array();
  for (const ServingRegion& region : serving.regions)
    regions.push_back({{"name", region.name}, {"bytes", region.bytes}});
  return OrderedJson{{"feasible", serving.plan.feasible},
                     {"budget_bytes", serving.plan.budget_bytes},
                     {"peak_bytes", serving.plan.peak_bytes},
                     {"minimum_bytes", serving.plan.minimum_bytes},
                     {"max_model_len", l.positions},
                     {"max_num_seqs", l.sequences},
                     {"max_num_batched_tokens", l.rows},
                     {"block_size", l.block_tokens},
                     {"blocks", l.blocks},
                     {"pool_tokens", serving.pool_tokens()},
                     {"kv_cache_dtype", cache_text(serving.cache)},
                     {"admission", serving.rule == AdmissionRule::balanced ? "balanced" : "guaranteed"},
                     {"park_blocks", l.park_slots},
                     {"park_bytes", serving.park_bytes()},
                     {"park_place", l.park_slots == 0       ? "none"
                                    : serving.parks_on_disk ? "disk"
                                                            : "memory"},
                     {"disk_bytes", serving.disk_bytes()},
                     {"weights_below_bytes", serving.streamed.below_bytes},
                     {"step_weight_bytes", serving.streamed.step_bytes},
                     {"predicted_step_seconds", serving.plan.step_seconds},
                     {"techniques", taken_techniques(serving.plan)},
                     {"regions", regions}}
             .dump(2) +
         "\n";
}

// What a larger budget would allow; empty if nothing more.
std::string next_text(const ServingArguments& arguments, const ServingPlan& serving) {
  InferenceOptions more = arguments.options;
  more.machine.memory = serving.plan.budget_bytes + kMoreBytes;
  const ServingPlan next = plan_serving(more, arguments.serving);
  if (!next.plan.feasible || (next.pool_tokens() <= serving.pool_tokens() && next.limits.rows <= serving.limits.rows &&
                              next.limits.positions <= serving.limits.positions))
    return "the next GiB would hold no more";
  return fmt::format("the next GiB would hold {}; {} are computed together, {} tokens in a step", holds_text(next),
                     next.limits.sequences, next.limits.rows);
}

}  // namespace

std::string serving_text(const ServingPlan& serving) {
  const StepLimits& l = serving.limits;
  std::string text = fmt::format("serve {}: {} parameters, budget {}, planned peak {}\n", serving.plan.model,
                                 format_count(serving.plan.parameters), format_bytes(serving.plan.budget_bytes),
                                 format_bytes(serving.plan.peak_bytes));
  for (const ServingRegion& region : serving.regions) text += bytes_line(region.name, region.bytes);
  text += bytes_line("peak", serving.plan.peak_bytes);
  if (serving.plan.host.peak_bytes > 0) text += bytes_line("on the host", serving.plan.host.peak_bytes);
  if (serving.disk_bytes() > 0) text += bytes_line("on disk", serving.disk_bytes());
  text += streamed_text(serving);
  if (l.whole_sequences)
    text += fmt::format(
        "an encoder: it makes embeddings of sequences of up to {} tokens; the KV pool ({}) holds those "
        "of a step\n",
        l.positions, cache_text(serving.cache));
  else
    text += fmt::format("the KV pool ({}) holds {}\n", cache_text(serving.cache), holds_text(serving));
  if (serving.cache == DType::i8) text += "a KV pool of int8 is lossy: keys and values are rounded to 8 bits\n";
  text += fmt::format("{} sequences are computed together, {} tokens in a step; least budget {} bytes\n", l.sequences,
                      l.rows, serving.plan.minimum_bytes);
  if (serving.rule == AdmissionRule::balanced) text += park_text(serving);
  return text;
}

int run_plan_serve(ServingArguments arguments, bool json) {
  arguments.options.machine.force = true;                               // planning for another machine is allowed
  Server::book(arguments.options, ServerOptions(), arguments.serving);  // with the defaults of `serve`
  const ServingPlan serving = plan_serving(arguments.options, arguments.serving, [&](const std::string& note) {
    if (!arguments.quiet) print_note(note);
  });
  const MachineOptions& machine = arguments.options.machine;
  if (!arguments.quiet) print_remark(budget_remark(machine.device, machine.memory));
  if (json) std::cout << serving_json(serving);
  if (!serving.plan.feasible) return refuse(serving.plan);
  if (!json) std::cout << serving_text(serving) << next_text(arguments, serving) << '\n';
  return 0;
}

}  // namespace headroom
