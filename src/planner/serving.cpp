#include "planner/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"
#include "passes/offload_parameters.h"
#include "planner/finished_generation.h"
#include "planner/search.h"
#include "planner/techniques/offload.h"
#include "planner/weight_placement.h"

namespace headroom {
namespace {

constexpr int64_t kRowChoices[] = {256, 128, 64, 32, 16};
constexpr int64_t kSequenceChoices[] = {32, 16, 8, 4, 2, 1};
constexpr int64_t kGoodPositions = 2048;  // fewer rows are preferred to sequences shorter than these
constexpr int64_t kUsualPositions = 512;  // length of a sequence for weighing copies of weights against the pool

// The arena of one size without the pool, and the pool's bytes by block.
struct ArenaParts {
  TierBytes arenas;
  std::vector<int64_t> block_bytes;  // of each tensor of the pool
};

class ServingPlanner {
 public:
  // `at`: the weights' placement; default: on the device.
  ServingPlanner(const PlanRequest& request, const ServingQuestion& question, std::optional<Placement> at = {})
      : request_(request), question_(question), at_(at) {}

  SizedServing run() const {
    check_untrained_pins(request_);
    if (offload_asked()) return below({});
    const std::vector<ServingSize> sizes = all_sizes(least_positions());
    const TierBytes least = peaks(sizes.back());
    if (!fits(least, request_)) {
      if (request_.host_budget_bytes > 0 || request_.disk_budget_bytes > 0) return below(least.device);
      return refusal(sizes.back(), least.device);
    }
    return take(filled(lengthened(largest(sizes)), 2), least.device);
  }

 private:
  bool offload_asked() const {
    const std::optional<OffloadPin> pin = offload_pin(request_, kOffloadParameters.name);
    return pin && !pin->off;
  }

  int64_t least_positions() const {
    return question_.positions.value_or(std::min(question_.model_positions, kLeastPositions));
  }

  ServingSize with_positions(ServingSize size, int64_t positions) const {
    size.positions = positions;
    size.blocks = question_.table_blocks(positions);
    return size;
  }

  // Sizes with the smallest pool, in descending order of memory.
  std::vector<ServingSize> all_sizes(int64_t positions) const {
    std::vector<ServingSize> sizes;
    const auto add = [&](int64_t sequences, int64_t rows) {
      sizes.push_back(with_positions({0, sequences, rows, 0}, positions));
    };
    if (question_.sequences) {
      for (const int64_t rows : rows_for(*question_.sequences)) add(*question_.sequences, rows);
      return sizes;
    }
    bool first = true;
    for (const int64_t sequences : kSequenceChoices) {
      if (question_.rows && *question_.rows < sequences) continue;
      const std::vector<int64_t> rows = rows_for(sequences);
      for (size_t i = first ? 0 : rows.size() - 1; i < rows.size(); ++i) add(sequences, rows[i]);
      first = false;
    }
    return sizes;
  }

  std::vector<int64_t> rows_for(int64_t sequences) const {
    if (question_.rows) return {*question_.rows};
    std::vector<int64_t> rows;
    for (const int64_t choice : kRowChoices)
      if (choice >= sequences) rows.push_back(choice);
    if (rows.empty()) rows.push_back(sequences);
    return rows;
  }

  PlanRequest booked(const ServingSize& size) const {
    PlanRequest request = request_;
    question_.book(request, size);
    return request;
  }

  // With all weights on the device. `verify`: checked after every pass, for the graph of a plan.
  Graph graph(const PlanRequest& request, const ServingSize& size, bool verify) const {
    Graph built = question_.build(size);
    std::vector<std::string> steps;
    for (const Program& program : built.programs)
      if (program.name != "load") steps.push_back(program.name);
    return finished_generation(request, std::move(built), steps, ProductRows::invariant, question_.lora, verify);
  }

  ArenaParts parts(const ServingSize& size) const {
    const PlanRequest request = booked(size);
    Graph graph = this->graph(request, size, false);
    if (at_) graph = placed({std::move(graph), size.rows, size.sequences, {}}, *at_);
    ArenaParts out{arenas_of(request, graph, at_.has_value()), {}};
    const Bindings bounds = graph.bounds();
    for (const Value& value : graph.values) {
      if (!value.persistent || value.role != Role::kv_cache) continue;
      const int64_t bytes = storage_bytes(concrete(value.type, bounds));
      out.block_bytes.push_back(bytes / question_.all_blocks(size));
      out.arenas.device -= align_up(bytes, request_.facts.alignment);
    }
    return out;
  }

  // Persistent tensors are at the bottom of the arena: the pool adds exactly its own bytes.
  TierBytes peaks(const ArenaParts& parts, const ServingSize& size) const {
    TierBytes arenas = parts.arenas;
    for (const int64_t bytes : parts.block_bytes)
      arenas.device += align_up(bytes * question_.all_blocks(size), request_.facts.alignment);
    return tier_peaks(arenas, booked(size));
  }
  TierBytes peaks(const ServingSize& size) const { return peaks(parts(size), size); }
  bool holds(const ServingSize& size) const { return fits(peaks(size), request_); }

  // The first of `sizes` that fits (the last is known to fit), with sequences of a good length if there is one.
  ServingSize largest(const std::vector<ServingSize>& least_sizes) const {
    if (!question_.positions && question_.model_positions > kLeastPositions) {
      const std::vector<ServingSize> sizes = all_sizes(std::min(question_.model_positions, kGoodPositions));
      if (holds(sizes.back())) return first_that_fits(sizes);
      return least_sizes.back();
    }
    return first_that_fits(least_sizes);
  }

  ServingSize first_that_fits(const std::vector<ServingSize>& sizes) const {
    size_t low = 0, high = sizes.size() - 1;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      holds(sizes[middle]) ? high = middle : low = middle + 1;
    }
    return sizes[high];
  }

  // The longest sequences, in whole blocks, whose smallest pool fits. Bytes grow linearly with the length, so two
  // lengths nearly give the limit.
  ServingSize lengthened(const ServingSize& size) const {
    const int64_t most = question_.model_positions;
    if (question_.positions || size.positions >= most) return size;
    const auto at = [&](int64_t blocks) {
      return with_positions(size, std::min(most, blocks * question_.block_tokens));
    };
    const auto bytes = [&](int64_t blocks) { return peaks(at(blocks)).device; };
    int64_t low = size.blocks, high = question_.table_blocks(most);
    int64_t low_bytes = bytes(low), high_bytes = bytes(high);
    if (high_bytes <= request_.budget_bytes) return at(high);
    while (high - low > 1) {
      const double share = static_cast<double>(request_.budget_bytes - low_bytes) /
                           static_cast<double>(std::max<int64_t>(1, high_bytes - low_bytes));
      const int64_t guess = low + static_cast<int64_t>(share * static_cast<double>(high - low));
      const int64_t middle = std::clamp(guess, low + 1, high - 1);
      const int64_t middle_bytes = bytes(middle);
      if (middle_bytes <= request_.budget_bytes)
        low = middle, low_bytes = middle_bytes;
      else
        high = middle, high_bytes = middle_bytes;
    }
    return at(low);
  }

  // As many blocks as fit, at most so many times as all sequences can fill.
  ServingSize filled(ServingSize size, int64_t times) const {
    const ArenaParts parts = this->parts(size);
    const int64_t most =
        question_.most_blocks.value_or(times * size.sequences * question_.table_blocks(size.positions));
    int64_t low = size.blocks, high = std::max(low, most) + 1;
    while (high - low > 1) {
      size.blocks = low + (high - low) / 2;
      (fits(peaks(parts, size), request_) ? low : high) = size.blocks;
    }
    size.blocks = low;
    return size;
  }

  // The work: prompts are read, and as many tokens generated, by as many sequences as the pool has room for.
  Variant variant(const PlanRequest& request, const ServingSize& size, bool verify) const {
    constexpr int64_t kWork = 4096;
    Variant out{graph(request, size, verify), size.rows, size.sequences, {}};
    const int64_t room = size.blocks / question_.table_blocks(std::min(size.positions, kUsualPositions));
    const int64_t drawn = std::clamp<int64_t>(room, 1, size.sequences);
    out.work = {{step_of(out.graph, size.rows), std::max<int64_t>(1, kWork / size.rows), 1},
                {step_of(out.graph, drawn), std::max<int64_t>(1, kWork / drawn), 1}};
    return out;
  }

  // The smallest step with so many rows.
  std::string step_of(const Graph& graph, int64_t rows) const {
    std::string smallest = graph.programs.at(1).name;  // the first program is "load"
    for (const Program& program : graph.programs)
      if (question_.rows_of(program.name) >= rows) smallest = program.name;
    return smallest;
  }

  // The step of one token, which every size has.
  static std::string timed(const Variant& variant) { return variant.graph.programs.back().name; }

  SizedServing take(const ServingSize& size, int64_t least) const {
    const PlanRequest request = booked(size);
    const Variant chosen = variant(request, size, true);
    SizedServing out{lay_out(request, chosen, timed(chosen)), size};
    HR_CHECK(out.plan.feasible, "a server of {} blocks takes {} bytes, more than was estimated", size.blocks,
             out.plan.peak_bytes);
    out.plan.minimum_bytes = least;
    return out;
  }

  SizedServing refusal(const ServingSize& size, int64_t least) const {
    const PlanRequest request = booked(size);
    SizedServing out{{}, size};
    out.plan.model = request.model;
    out.plan.parameters = request.parameters;
    out.plan.budget_bytes = request.budget_bytes;
    out.plan.facts = request.facts;
    out.plan.process = request.process;
    out.plan.peak_bytes = out.plan.minimum_bytes = least;
    const auto smallest = [&](size_t, bool verify) { return variant(request, size, verify); };
    const std::string way = way_below(request, 1, smallest, timed(smallest(0, false)), least);
    out.plan.cheapest_fix = fmt::format(
        "sequences shorter than the {} tokens of --max-model-len, weights in fewer bits (--precision "
        "bf16-true, --technique quantize-weights=int8){}{}",
        size.positions, way.empty() ? "" : ", or weights below: ", way);
    return out;
  }

  // Weights in lower tiers. While they do not fit, a byte of the pool buys more tokens a second than a byte of weights
  // on the device, since all sequences of a step share its copies. So the sizes are chosen with all weights below, then
  // layers stay on the device as far as the pool leaves room, and blocks kept for their prefix get the rest. `known`:
  // the least budget of the device without this.
  SizedServing below(std::optional<int64_t> known) const {
    const ServingSize smallest = all_sizes(least_positions()).back();
    const PlanRequest request = booked(smallest);
    const Variant least = variant(request, smallest, true);
    std::optional<Below> best;
    for (const Placement& at : roomy_placements(request, least)) {
      std::optional<Below> found = ServingPlanner(request_, question_, at).sized();
      if (found && (!best || found->seconds < best->seconds)) best = found;
    }
    const auto each = [&](size_t, bool) { return least; };
    SizedServing out = best ? ServingPlanner(request_, question_, best->at).laid_out(best->size)
                            : SizedServing{place_weights(request, 1, each, timed(least)), smallest};
    if (best) out.plan.minimum_bytes = least_below(request, least);
    if (known) out.plan.minimum_bytes = std::min(out.plan.minimum_bytes, *known);
    return out;
  }

  struct Below {
    ServingSize size;
    Placement at;
    double seconds = std::numeric_limits<double>::infinity();  // of the work
  };

  // Sizes with this placement, and the fastest placement with these; none if nothing fits.
  std::optional<Below> sized() const {
    const std::vector<ServingSize> sizes = all_sizes(least_positions());
    if (!holds(sizes.back())) return {};
    Below out{filled(lengthened(largest(sizes)), 1), *at_};
    const PlanRequest request = booked(out.size);
    if (const auto fastest = fastest_placement(request, variant(request, out.size, false), out.seconds))
      out.at = *fastest;
    return out;
  }

  // The plan of this placement, with the remaining bytes used for blocks.
  SizedServing laid_out(const ServingSize& least) const {
    for (const ServingSize& size : {filled(least, 2), least}) {
      const PlanRequest request = booked(size);
      const Variant chosen = variant(request, size, true);
      SizedServing out{lay_out(request, chosen, *at_, timed(chosen)), size};
      if (out.plan.feasible) return out;
    }
    HR_CHECK(false, "a server of {} blocks with weights below takes more than was estimated", least.blocks);
  }

  const PlanRequest& request_;
  const ServingQuestion& question_;
  const std::optional<Placement> at_;
};

}  // namespace

SizedServing plan_steps(const PlanRequest& request, const ServingQuestion& question) {
  return ServingPlanner(request, question).run();
}

}  // namespace headroom
