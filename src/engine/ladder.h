// The table of techniques: what each saves and costs alone, then together, against a run without any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "passes/pass_info.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

struct LadderRow {
  std::string name;                               // "baseline", a technique, or "together: a + b"
  std::map<std::string, std::string> techniques;  // their settings, as --technique takes them
  TechniqueKind kind = TechniqueKind::exact;      // the furthest from exact among the combined ones
  int64_t peak_bytes = 0;                         // of the device, the process's part included
  double step_seconds = 0;                        // predicted
  int64_t saves_bytes = 0;                        // against the baseline; negative: it needs more
  double costs_seconds = 0;                       // against the baseline; negative: it is faster
  bool fits = false;                              // in the options' budget
};

// The rows of a training run: the baseline (the whole global batch at once, every activation kept, nothing on another
// tier), each technique that applies to it, then combinations of those that save memory, kind by kind, each row with
// one more. Techniques that do not change arithmetic come first. Tiers are used if the options have them. The baseline
// keeps what the options name (--precision, --lora-r, --freeze); pins of --technique are left out. Plans a dozen runs:
// seconds. Throws as plan_training().
std::vector<LadderRow> technique_ladder(const TrainOptions& options, const ModelFiles& model);

// {"rungs": [...]}, as `plan --ladder --json` writes it.
std::string ladder_json(const std::vector<LadderRow>& rows);
// A line per row, for people.
std::string ladder_text(const std::vector<LadderRow>& rows, int64_t budget_bytes);

}  // namespace headroom
