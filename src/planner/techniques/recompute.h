// The record of recompute, and its setting as the level of each block.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/recompute.h"
#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique recompute;
}

// Its setting in a candidate.
const Setting& recompute_of(const Candidate& candidate);
// Whether every layer keeps its input only.
bool recomputes_layers(const Candidate& candidate);

// Whether a candidate has no other way left to save memory: one sequence at a time, every layer recomputed, and all
// possible values in the lower tiers, if there are any.
bool is_frugal(const Candidate& candidate);

// Whether the losses depend on what is kept, because that is rounded, and may not depend on the budget.
bool has_fixed_keeps(const PlanRequest& request);
inline constexpr char kWhyFixedKeeps[] =
    "what is kept is rounded, so with --arithmetic fixed this does not depend on the budget";

// A number of consecutive blocks with the same level.
struct KeepRun {
  int64_t blocks = 0;
  Keep keep = Keep::all;

  bool operator==(const KeepRun&) const = default;
};
inline constexpr size_t kMostKeepRuns = 4;

// At most kMostKeepRuns runs, the first blocks first. Settings are normalised: empty runs are left out, equal
// neighbours joined. With `others` the runs are of the layers of one kind, `others` of those of the other
// (layer_kinds.h). Runs of models with more than 1023 layers are multiples of keep_unit().
Setting keep_setting(const std::vector<KeepRun>& runs, const std::vector<KeepRun>& others = {});
int64_t keep_unit(int64_t blocks);
// The first `treated` of `blocks` blocks have level `first`, the others `rest`. Activations of late layers live
// shortest, so the first blocks are treated first.
Setting keep_setting(int64_t blocks, int64_t treated, Keep first, Keep rest);
// The level of each block; `kinds` is required if the setting has two.
std::vector<Keep> keeps(const Setting& setting, const std::vector<uint8_t>& kinds = {});
// "8 x block-input, 22 x keep-all"; of two kinds "20 x block-input; 6 x drop-cheap"
std::string describe_keep(const Setting& setting);
// Parses this text, or the name of one level, which then applies to every block; nothing for other texts and for other
// numbers of blocks.
std::optional<Setting> parse_keeps(std::string_view text, const std::vector<uint8_t>& kinds);

// The levels that the planner uses, from keeping most to keeping least.
std::vector<Keep> planned_levels();

}  // namespace headroom
