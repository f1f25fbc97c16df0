// The interface between planner and runtime: an arena for each tier of memory and the programs that run in them.
// Immutable once made; the planner writes it, the runtime reads it. docs/plan_format.md describes the file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ir/tier_bytes.h"
#include "plan/memory_class.h"

namespace headroom {

// A tensor at a fixed offset in the arena of its tier.
struct Operand {
  int64_t offset = 0;  // bytes from the arena's begin
  ConcreteType type;
  Tier tier = Tier::device;
};

std::vector<ConcreteType> types_of(const std::vector<Operand>& operands);

enum class InstructionKind : uint8_t { call, loop_begin, loop_end };

// One kernel call, or an end of a loop whose trip count is given by name at run time.
struct Instruction {
  InstructionKind kind = InstructionKind::call;
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  int64_t scratch_offset = 0;  // in the device's arena
  int64_t scratch_bytes = 0;
  double predicted_seconds = 0;  // of one call, by the profile the plan was made with
  int32_t block = kNone;
  Stage stage = Stage::forward;
};

// The input of a call that its op calls `name`. Throws InternalError if there is none.
const Operand& operand(const Instruction& call, std::string_view name);
// The first output of a call, and of one that starts a transfer the token, its last output.
inline const Operand& result_of(const Instruction& call) { return call.outputs.front(); }
inline const Operand& token_of(const Instruction& call) { return call.outputs.back(); }

struct PlanProgram {
  std::string name;
  std::vector<Instruction> instructions;
  std::vector<Operand> results;
  TierBytes peaks;  // highest end offset in each arena that this program touches, persistent tensors included
};

// A value that lives for the whole run.
struct PersistentTensor {
  std::string name;
  Role role = Role::parameter;
  Operand place;
};

// Bytes by class at the peak; they sum to arena_bytes.
struct Breakdown {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t activations = 0;
  int64_t workspace = 0;
  int64_t data = 0;
  int64_t alignment = 0;  // rounding and gaps
};

// A technique of the chosen plan, or one that is off, with the reason.
struct TechniqueReport {
  std::string name;
  std::string kind;          // exact, reassociating, data-order, lossy
  std::string value;         // "on", "off", or the setting chosen
  int64_t saves_bytes = 0;   // of the arena, against the plan without it
  double costs_seconds = 0;  // per step, against the plan without it
  std::string why;
  bool taken = false;  // it changes the plan, so there is a plan without it
};

// A further choice, as in plan.json.
using Choice = std::variant<bool, int64_t, std::string>;

// The choices: read by the runtime, and recorded by each technique.
struct Choices {
  int64_t micro_batch = 1;
  int64_t accumulation = 1;
  int64_t seq_length = 0;
  std::vector<int64_t> buckets;                        // shorter sequence lengths with their own programs, ascending
  std::vector<std::pair<std::string, Choice>> others;  // "recompute", "8 x block-input, 22 x keep-all"
  std::map<std::string, std::string> pins;             // techniques whose settings make the same sums again when pinned

  void set(std::string name, Choice value) { others.emplace_back(std::move(name), std::move(value)); }
  // False, 0 or "" if nothing has recorded it; a value of another type is a broken invariant.
  bool flag(std::string_view name) const { return get<bool>(name); }
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  std::string text(std::string_view name) const { return get<std::string>(name); }

 private:
  template <typename T>
  T get(std::string_view name) const {
    for (const auto& [known, value] : others)
      if (known == name) return std::get<T>(value);
    return {};
  }
};

// Everything outside the arena, by part (bytes); their sum bounds it.
struct ProcessBytes {
  int64_t code = 0;  // binary, libraries, stacks, allocator
  int64_t tokenizer = 0;
  int64_t grammar = 0;      // for generation: its grammar, the trie of the vocabulary, token masks
  int64_t server = 0;       // for a server: connections, requests, answers, the scheduler's tables
  int64_t data = 0;         // loader and token cache buffers
  int64_t kernels = 0;      // library primitives
  int64_t planner = 0;      // graph and plan tables
  int64_t page_tables = 0;  // of the arena: 1/512 of it with 4 KiB pages
  int64_t copies = 0;       // buffers and threads of copies to and from the disk
  int64_t gpu = 0;          // on the host: a GPU's driver and libraries, the window to its memory
  int64_t graphs = 0;       // on a GPU: CUDA graphs
  int64_t caller = 0;       // held before by a program that embeds headroom
  int64_t total() const {
    return code + tokenizer + grammar + server + data + kernels + planner + page_tables + copies + gpu + graphs +
           caller;
  }
};

// Bytes of the whole process while it prepares the data, before there is an arena: the least with which any data can be
// prepared, and the most that can be useful (in a request; long conversations need more than the least).
struct PrepareBytes {
  int64_t least = 0;
  int64_t most = 0;
};

// A lower tier, the host's memory or a file on disk: its budget and its contents.
struct TierPlan {
  int64_t budget_bytes = 0;  // 0: none given, nothing is kept there
  // The arena, and on the host the process. If nothing fits: the least that works with the other tiers' budgets.
  int64_t peak_bytes = 0;
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;
  Breakdown breakdown;
};

// Another request for a plan that does not fit.
struct Alternative {
  std::string options;  // "--max-seq-length 256", or words
  std::string effect;   // what it changes other than memory: "longer rows are cut"; may be empty
  int64_t minimum_bytes = 0;
  bool fits = false;  // the budget
};

struct Plan {
  std::string model;
  int64_t parameters = 0;
  bool feasible = false;
  int64_t budget_bytes = 0;
  int64_t peak_bytes = 0;     // of the largest phase: arena + process, or preparing the data
  int64_t minimum_bytes = 0;  // least budget with a plan
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;  // largest live sum: no arena can be smaller
  ProcessBytes process;
  PrepareBytes prepare;  // on the host; 0: no data is prepared
  Breakdown breakdown;
  // The host's tier, for a device with its own memory; on the CPU the figures above are the host's and these are 0.
  TierPlan host;
  ProcessBytes host_process;
  TierPlan disk;
  double step_seconds = 0;
  std::string profile;  // name and hash
  DeviceFacts facts;
  Choices choices;
  std::vector<TechniqueReport> techniques;
  std::vector<TensorGroup> peak_tensors;  // of the device's arena at its peak, largest first
  std::string cheapest_fix;               // if it does not fit: a change that would make it fit
  std::vector<Alternative> alternatives;
  std::vector<PersistentTensor> tensors;
  std::vector<PlanProgram> programs;

  // For Tier::host or Tier::disk.
  TierPlan& below(Tier tier) { return tier == Tier::host ? host : disk; }
  const TierPlan& below(Tier tier) const { return tier == Tier::host ? host : disk; }
  TierBytes arenas() const { return {arena_bytes, host.arena_bytes, disk.arena_bytes}; }

  const PlanProgram* program(std::string_view name) const;
  const PersistentTensor* tensor(std::string_view name) const;
};

// The name of a program for a shorter sequence length: "train_step@256".
std::string bucket_program(std::string_view program, int64_t length);

// The budget and the peak of a tier, as in plan.json: for the tier that --memory bounds the plan's own.
struct TierFigures {
  int64_t budget_bytes = 0;
  int64_t peak_bytes = 0;
};
TierFigures tier_figures(const Plan& plan, Tier tier);

// The techniques that change the plan, with their settings.
std::map<std::string, std::string> taken_techniques(const Plan& plan);
// "micro-batch 1; recompute 30 x block-input" of these, or "no technique".
std::string settings_text(const std::map<std::string, std::string>& techniques);

// The summary as JSON text (docs/plan_format.md), without the programs.
std::string plan_json(const Plan& plan);
// The whole plan as readable text: persistent tensors with offsets, then every instruction with its operands' offsets.
std::string plan_text(const Plan& plan);

}  // namespace headroom
