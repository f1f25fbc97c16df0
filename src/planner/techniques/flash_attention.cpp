#include "passes/flash_attention.h"

#include "planner/technique.h"

namespace headroom::techniques {

extern const Technique flash_attention;

// No pass: there is no other kernel.
constinit const Technique flash_attention{
    .info = &kFlashAttention,
    .check = [](const PlanRequest&, const std::string& setting) { check_setting(kFlashAttention, setting, {"on"}); },
    .told = [](const PlanRequest&, const Candidate&) -> Told {
      return {
          .value = "on", .why = "always on: attention in tiles, never sequence x sequence", .pin_leaves_choice = true};
    },
};

}  // namespace headroom::techniques
