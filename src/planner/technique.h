// The planner's record of a technique: its possible settings, those that the planner may try, its pass, and its text in
// a plan. Everything else about techniques is a loop over pipeline.h's list.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/pass.h"
#include "planner/assembly.h"
#include "planner/request.h"
#include "planner/technique_list.h"

namespace headroom {

// The setting of a technique. The technique decides which members it uses; all zero: off.
struct Setting {
  int64_t count = 0;  // of sequences, rows, layers or windows
  int32_t of = 0;     // out of how many, if `count` is a part
  uint8_t form = 0;   // which of the technique's forms
  Tier tier = Tier::device;
  int64_t more = 0;  // a second number, for some techniques

  auto operator<=>(const Setting&) const = default;
  bool taken() const { return *this != Setting{}; }
};

// A point of the search: a setting of every technique.
class Candidate {
 public:
  static constexpr size_t kTechniques = technique_lists::kAll.size();

  Setting& operator[](const Technique& technique) { return settings_[slot(technique)]; }
  const Setting& operator[](const Technique& technique) const { return settings_[slot(technique)]; }
  // The same with this technique off.
  Candidate without(const Technique& technique) const {
    Candidate out = *this;
    out[technique] = {};
    return out;
  }
  bool operator==(const Candidate&) const = default;

 private:
  static size_t slot(const Technique& technique);  // its index in all_techniques()

  // Every candidate of a search holds 24 bytes for each technique, so none may be wasted.
  std::array<Setting, kTechniques> settings_{};
};

// Why a technique cannot be used, and what would allow it; empty if it can.
struct Verdict {
  std::string why_not;
  std::string remedy;
};

// A technique's text in a plan.
struct Told {
  std::string value;                      // "on", "off", or the setting chosen
  std::string why;                        // unless a pin says so
  std::optional<Candidate> without = {};  // the candidate to compare with
  std::string also = {};                  // always appended
  std::string if_larger = {};             // appended if it needs more memory than it saves
  bool pin_leaves_choice = false;         // the pin does not explain the choice
};

// An option of the command line that means a setting of one technique.
struct Spelling {
  std::string_view option = {};   // "--precision"
  std::string_view value = {};    // "bf16-true"; empty: the setting itself
  std::string_view setting = {};  // "on", which this value means; empty: any
};

// What a technique makes of the model's weights, for others that cannot act on such weights.
enum class WeightForm : uint8_t {
  plain,    // nothing else
  adapted,  // frozen, with trained adapters beside them
  codes,    // frozen, stored as codes
  rounded,  // kept in full, rounded when they are read
};

// A technique in the ladder (engine/ladder.h).
struct LadderPlace {
  int at = 0;                         // among those of its kind, from 1; 0: it is not in it
  const Technique* beside = nullptr;  // it is only tried with this one
};

struct Technique {
  const PassInfo* info = nullptr;  // name, stage, kind, a line of help

  // The option that sets it; without one, --technique does.
  Spelling option = {};
  // Options of other programs that pin it.
  std::span<const Spelling> aliases = {};
  // The setting that the ladder tries, and that messages propose.
  std::string_view usual = "on";
  LadderPlace ladder = {};
  // Named by --allow, or its kind, the planner may use it. Others it uses anyway, or not at all unless they are named.
  bool by_permission = false;

  // Throws Error(usage) for a setting that does not exist or cannot be honoured.
  void (*check)(const PlanRequest& request, const std::string& setting) = nullptr;
  // Absent: it can always be used.
  Verdict (*verdict)(const PlanRequest& request) = nullptr;

  // The settings to try with those decided before it (pipeline.h has the order), in the order of least_first; pins are
  // honoured. Absent: no setting turns it on.
  std::vector<Setting> (*choices)(const PlanRequest& request, const Candidate& decided) = nullptr;
  bool least_first = false;  // of memory; else last
  // Never used by the planner's choice, whatever its kind: only the user sets it.
  bool named_only = false;
  // Settings that make the same graph as the candidate's, including its own: their cost is computed without expanding
  // the graph again.
  std::vector<Setting> (*same_graph)(const PlanRequest& request, const Candidate& candidate) = nullptr;
  // Tried with candidates that are worth using with the first setting; the least memory first.
  std::vector<Setting> (*refinements)(const PlanRequest& request, const Candidate& candidate) = nullptr;
  // Whether with it, too, the settings of recompute of single layers add up (layer_facts.h), so that they may be mixed.
  bool layers_add_up = true;
  // Whether with it the loss has no chunks of rows.
  bool cuts_loss = false;
  // Whether it rounds what is kept for the backward pass, so that the losses depend on what is kept.
  bool rounds_kept = false;
  // The part of the setting on which the graph depends. Absent: all of it.
  Setting (*in_graph)(const PlanRequest& request, const Candidate& candidate) = nullptr;

  WeightForm weights = WeightForm::plain;

  // A model that is not trained can have it: --technique of evaluate, generate and serve.
  bool for_inference = false;
  // Rewrites the programs of such a model that generate, if the technique is on.
  void (*inference_pass)(Graph& graph, std::span<const RegionId> programs, const PlanRequest& request) = nullptr;

  // Rewrites the forward program, before autodiff, if the technique is on.
  void (*model_pass)(Assembly& assembly, const PlanRequest& request, const Candidate& candidate) = nullptr;
  // Rewrites the training programs, after autodiff, if the technique is on or `runs_always`.
  bool runs_always = false;
  void (*pass)(Graph& graph, const PlanRequest& request, const Candidate& candidate) = nullptr;

  // Bytes that the process holds for it outside the arenas: tables of further instructions, kernels of further shapes.
  // Absent: none.
  int64_t (*process_bytes)(const PlanRequest& request, const Candidate& candidate) = nullptr;

  Told (*told)(const PlanRequest& request, const Candidate& chosen) = nullptr;
  // "loss chunk 256": its part of a candidate's line; empty: none. For values moved to a tier: "weights".
  std::string (*phrase)(const Setting& setting) = nullptr;
  // Fields of plan.json.
  void (*record)(const PlanRequest& request, const Candidate& chosen, Choices& choices) = nullptr;
  // A setting as a pin that selects it again, with which a resumed run repeats the checkpoint's setting.
  std::string (*as_pin)(const Setting& setting) = nullptr;

  std::string_view name() const { return info->name; }
};

// Whether the planner may use it, and drop it, without being told: the training stays the same up to rounding.
bool is_planners_choice(const Technique& technique);

// The option and the value that ask for its usual setting: "--precision", "bf16-true"; "--technique", "recompute=on".
std::pair<std::string, std::string> asked_by(const Technique& technique);

// The number of a checked pin; 0 if it has none.
int64_t pinned_number(const PlanRequest& request, const PassInfo& info);

// Whether a technique is pinned.
inline bool asked_for(const PlanRequest& request, const PassInfo& info) {
  const std::string said = pin(request, info.name);
  return !said.empty() && said != "off";
}

// Why a technique is pinned: the reason that its pin gives, or that --technique names it. It has a pin.
std::string why_pinned(const PlanRequest& request, const PassInfo& info);

// Whether a technique that makes this of the weights is pinned.
bool weights_are(const PlanRequest& request, WeightForm form);

// The choices of a technique that is only used if it is pinned.
template <const PassInfo& info>
std::vector<Setting> when_asked_for(const PlanRequest& request, const Candidate&) {
  return {asked_for(request, info) ? Setting{1} : Setting{}};
}

// Throws Error(usage) unless `setting` is one of `words`, or with `number` a number of at least 1.
void check_setting(const PassInfo& info, const std::string& setting, const std::vector<std::string_view>& words,
                   bool number = false);
template <const PassInfo& info>
void check_switch(const PlanRequest&, const std::string& setting) {
  check_setting(info, setting, {"on", "off"});
}

}  // namespace headroom
