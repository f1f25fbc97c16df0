// A technique as the planner knows it: one record, which says what may be asked of it, what the planner may try, which
// pass carries it out, and what a plan says of it. Everything else about techniques is a loop over pipeline.h's list.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "passes/pass.h"
#include "planner/assembly.h"
#include "planner/request.h"

namespace headroom {

struct Technique;

// How far a technique is taken. Which members mean something is the technique's own affair; all zero: not taken.
struct Setting {
  int64_t count = 0;  // of sequences, rows, layers or windows
  int32_t of = 0;     // of how many, where `count` is a part
  uint8_t form = 0;   // which of the technique's forms
  Tier tier = Tier::device;
  int64_t more = 0;  // a second number, of techniques that say so

  auto operator<=>(const Setting&) const = default;
  bool taken() const { return *this != Setting{}; }
};

// One point of the search: a setting of every technique.
class Candidate {
 public:
  static constexpr size_t kTechniques = 25;  // of all_techniques()

  Setting& operator[](const Technique& technique) { return settings_[slot(technique)]; }
  const Setting& operator[](const Technique& technique) const { return settings_[slot(technique)]; }
  // The same without a technique.
  Candidate without(const Technique& technique) const {
    Candidate out = *this;
    out[technique] = {};
    return out;
  }
  bool operator==(const Candidate&) const = default;

 private:
  static size_t slot(const Technique& technique);  // its place in all_techniques()

  // Every candidate of a search holds 24 bytes for each: none is to spare.
  std::array<Setting, kTechniques> settings_{};
};

// Why a technique cannot be taken, and what would let it; empty where it can.
struct Verdict {
  std::string why_not;
  std::string remedy;
};

// What a plan says of a technique.
struct Told {
  std::string value;                      // "on", "off", or the setting chosen
  std::string why;                        // unless a pin says so
  std::optional<Candidate> without = {};  // what it is compared with
  std::string also = {};                  // appended, whatever said so
  std::string if_larger = {};             // appended where it takes more memory than it saves
  bool pin_leaves_choice = false;         // the pin explains nothing
};

struct Technique {
  const PassInfo* info = nullptr;  // name, stage, kind, a line of help

  // Throws Error(usage) for what is not a setting of it, or cannot be honoured.
  void (*check)(const PlanRequest& request, const std::string& setting) = nullptr;
  // Absent: it can always be taken.
  Verdict (*verdict)(const PlanRequest& request) = nullptr;

  // The settings to try beside those decided before it (pipeline.h says in which order), in the order of least_first;
  // pins are honoured. Absent: it is never taken by a setting.
  std::vector<Setting> (*choices)(const PlanRequest& request, const Candidate& decided) = nullptr;
  bool least_first = false;  // of memory; else last
  // Never taken by itself, whatever its kind: the user alone sets it.
  bool named_only = false;
  // Those that make the same graph as the candidate's, its own among them: priced without expanding the graph again.
  std::vector<Setting> (*same_graph)(const PlanRequest& request, const Candidate& candidate) = nullptr;
  // Tried beside what is worth taking with the first; the least memory first.
  std::vector<Setting> (*refinements)(const PlanRequest& request, const Candidate& candidate) = nullptr;
  // What of the setting the graph depends on. Absent: all of it.
  Setting (*in_graph)(const PlanRequest& request, const Candidate& candidate) = nullptr;

  // Rewrites the forward program, before autodiff, where the technique is taken.
  void (*model_pass)(Assembly& assembly, const PlanRequest& request, const Candidate& candidate) = nullptr;
  // Rewrites the training programs, after it, where the technique is taken or `runs_always`.
  bool runs_always = false;
  void (*pass)(Graph& graph, const PlanRequest& request, const Candidate& candidate) = nullptr;

  // Bytes that the process holds for it outside the arenas: tables of further instructions, kernels of further shapes.
  // Absent: none beyond what every run has.
  int64_t (*process_bytes)(const PlanRequest& request, const Candidate& candidate) = nullptr;

  Told (*told)(const PlanRequest& request, const Candidate& chosen) = nullptr;
  // "loss chunk 256": its part of the line of a candidate; empty: none. Of what is moved to a tier: "weights".
  std::string (*phrase)(const Setting& setting) = nullptr;
  // Fields of plan.json.
  void (*record)(const PlanRequest& request, const Candidate& chosen, Choices& choices) = nullptr;
  // A setting as a pin that asks for it again. With it, a resumed run takes what the checkpoint's run took.
  std::string (*as_pin)(const Setting& setting) = nullptr;

  std::string_view name() const { return info->name; }
};

// The number that a checked pin says; 0 where it says none.
int64_t pinned_number(const PlanRequest& request, const PassInfo& info);

// Whether a technique is asked for by name.
inline bool asked_for(const PlanRequest& request, const PassInfo& info) {
  const std::string said = pin(request, info.name);
  return !said.empty() && said != "off";
}

// The choices of a technique that is only ever taken when asked for.
template <const PassInfo& info>
std::vector<Setting> when_asked_for(const PlanRequest& request, const Candidate&) {
  return {asked_for(request, info) ? Setting{1} : Setting{}};
}

// Throws Error(usage) unless `setting` is one of `words`, or with `number` a number of at least 1.
void check_setting(const PassInfo& info, const std::string& setting, std::initializer_list<std::string_view> words,
                   bool number = false);
template <const PassInfo& info>
void check_switch(const PlanRequest&, const std::string& setting) {
  check_setting(info, setting, {"on", "off"});
}

// Blocks (layers) of a forward graph.
int64_t block_count(const Graph& graph);

}  // namespace headroom
