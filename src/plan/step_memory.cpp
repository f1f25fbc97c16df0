#include "plan/step_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {
namespace {

constexpr size_t kMaxGroups = 96, kMaxTensors = 48, kMaxLayers = 512, kMaxName = 120;

// "model.layers.12.mlp" -> "model.layers.*.mlp": every part that is a number.
std::string without_numbers(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    if (!digit || (i > 0 && name[i - 1] != '.' && out.back() != '*'))
      out += name[i];
    else if (out.empty() || out.back() != '*')
      out += '*';
  }
  return out;
}

std::string shortened(std::string name) {
  if (name.size() <= kMaxName) return name;
  size_t keep = kMaxName - 3;
  while (keep > 0 && (static_cast<unsigned char>(name[keep]) & 0xC0) == 0x80) --keep;  // whole UTF-8 characters
  return name.substr(0, keep) + "...";
}

class Summary {
 public:
  Summary(const Plan& plan, const PlanProgram& program)
      : plan_(plan), program_(program), spans_(storage_spans(plan, program)) {
    out_.program = program.name;
    out_.instructions = static_cast<int32_t>(program.instructions.size());
  }

  StepMemory run() {
    if (out_.instructions == 0) return std::move(out_);
    make_timeline();
    take_alive();
    take_largest();
    cut_groups(groups());
    by_layer();
    return std::move(out_);
  }

  // The tensors alive at the peak, largest first.
  std::vector<TensorGroup> run_groups() {
    if (out_.instructions == 0) return {};
    make_timeline();
    take_alive();
    return groups();
  }
  // Of a summary that has run.
  int64_t peak_bytes() const { return std::accumulate(out_.peak.begin(), out_.peak.end(), int64_t{0}); }

 private:
  // Walks over time, keeping the largest sum of every interval and of all.
  void make_timeline() {
    const size_t count = static_cast<size_t>(out_.instructions);
    std::vector<ClassBytes> change(count + 1);
    for (const StorageSpan& span : spans_) {
      const int64_t rounding = align_up(span.bytes, plan_.facts.alignment) - span.bytes;
      for (const auto& [at, sign] : {std::pair{span.begin, 1}, std::pair{span.end, -1}}) {
        change[static_cast<size_t>(at)][static_cast<size_t>(span.kind)] += sign * span.bytes;
        change[static_cast<size_t>(at)][static_cast<size_t>(MemoryClass::alignment)] += sign * rounding;
      }
    }
    ClassBytes now{};
    int64_t fullest = -1;
    for (int32_t point = 0; point < timeline_points(out_.instructions); ++point) {
      int64_t most = -1;
      TimelinePoint best;
      for (int32_t at = stretch_begin(point, out_.instructions); at < stretch_begin(point + 1, out_.instructions);
           ++at) {
        for (size_t kind = 0; kind < kMemoryClasses; ++kind) now[kind] += change[static_cast<size_t>(at)][kind];
        const int64_t total = std::accumulate(now.begin(), now.end(), int64_t{0});
        const Instruction& instruction = program_.instructions[static_cast<size_t>(at)];
        if (total > most) most = total, best = {0, instruction.block, instruction.stage, now};
        if (total > fullest) fullest = total, out_.peak_instruction = at, out_.peak = now;
      }
      best.begin = stretch_begin(point, out_.instructions);
      out_.points.push_back(best);
    }
    const Instruction& peak = program_.instructions[static_cast<size_t>(out_.peak_instruction)];
    out_.peak_op = peak.op ? op_name(*peak.op) : "";
    out_.peak_block = peak.block;
    out_.peak_stage = peak.stage;
  }

  void take_alive() {
    std::erase_if(spans_, [&](const StorageSpan& span) {
      return out_.peak_instruction < span.begin || out_.peak_instruction >= span.end;
    });
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const StorageSpan& a, const StorageSpan& b) { return a.bytes > b.bytes; });
  }

  void take_largest() {
    out_.tensors.assign(spans_.begin(), spans_.begin() + static_cast<long>(std::min(spans_.size(), kMaxTensors)));
    for (StorageSpan& span : out_.tensors) span.name = shortened(std::move(span.name));
  }

  static void add(TensorGroup& group, const TensorGroup& more) {
    group.count += more.count;
    group.bytes += more.bytes;
    if (more.first_layer != kNone && (group.first_layer == kNone || more.first_layer < group.first_layer))
      group.first_layer = more.first_layer;
    group.last_layer = std::max(group.last_layer, more.last_layer);
  }

  std::vector<TensorGroup> groups() const {
    std::map<std::pair<MemoryClass, std::string>, TensorGroup> groups;
    for (const StorageSpan& span : spans_) {
      const std::string name = shortened(without_numbers(span.name));
      TensorGroup& into = groups[{span.kind, name}];
      into.name = name, into.kind = span.kind;
      add(into, {name, span.kind, 1, span.bytes, span.block, span.block});
    }
    std::vector<TensorGroup> out;
    for (auto& [key, value] : groups) out.push_back(std::move(value));
    std::stable_sort(out.begin(), out.end(),
                     [](const TensorGroup& a, const TensorGroup& b) { return a.bytes > b.bytes; });
    return out;
  }

  // The largest ones; the others as one row for each class.
  void cut_groups(std::vector<TensorGroup> all) {
    std::map<MemoryClass, TensorGroup> rest;
    for (size_t i = kMaxGroups; i < all.size(); ++i) {
      const TensorGroup& from = all[i];
      TensorGroup& into = rest[from.kind];
      into.name = "smaller ones", into.kind = from.kind;
      add(into, from);
    }
    all.resize(std::min(all.size(), kMaxGroups));
    out_.groups = std::move(all);
    for (auto& [kind, value] : rest) out_.groups.push_back(std::move(value));
  }

  void by_layer() {
    std::map<int32_t, ClassBytes> layers;
    for (const StorageSpan& span : spans_)
      layers[std::min(span.block, static_cast<int32_t>(kMaxLayers))][static_cast<size_t>(span.kind)] += span.bytes;
    for (const auto& [layer, bytes] : layers) out_.layers.push_back({layer, bytes});
  }

  const Plan& plan_;
  const PlanProgram& program_;
  std::vector<StorageSpan> spans_;
  StepMemory out_;
};

}  // namespace

int32_t timeline_points(int32_t count) { return std::min(count, kTimelinePoints); }

int32_t stretch_begin(int32_t point, int32_t count) {
  return static_cast<int32_t>(int64_t{point} * count / std::max(1, timeline_points(count)));
}

StepMemory step_memory(const Plan& plan, std::string_view name) {
  const PlanProgram* program = plan.program(name);
  HR_CHECK(program, "the plan has no program '{}'", name);
  return Summary(plan, *program).run();
}

std::vector<TensorGroup> peak_tensors(const Plan& plan) {
  std::vector<TensorGroup> fullest;
  int64_t most = -1;
  for (const PlanProgram& program : plan.programs) {
    if (program.name.find('@') != std::string::npos) continue;  // shorter sequences
    Summary summary(plan, program);
    std::vector<TensorGroup> groups = summary.run_groups();
    if (summary.peak_bytes() > most) most = summary.peak_bytes(), fullest = std::move(groups);
  }
  return fullest;
}

}  // namespace headroom
