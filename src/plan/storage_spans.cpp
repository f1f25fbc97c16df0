#include "plan/storage_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/row_slice.h"

namespace headroom {
namespace {

MemoryClass class_of(Role role) {
  switch (role) {
    case Role::parameter:
      return MemoryClass::weights;
    case Role::gradient:
      return MemoryClass::gradients;
    case Role::optimizer:
      return MemoryClass::optimizer;
    case Role::activation:
    case Role::kv_cache:
      return MemoryClass::activations;
    case Role::workspace:
      return MemoryClass::workspace;
    case Role::constant:
    case Role::data:
      break;
  }
  return MemoryClass::data;
}

// The layer in "model.layers.12.mlp...": the first part that is a number.
int32_t layer_in(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const size_t dot = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, dot - at);
    const bool digits = !part.empty() && part.size() < 7 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits) return std::stoi(std::string(part));
    at = dot + 1;
  }
  return kNone;
}

class Reader {
 public:
  Reader(const Plan& plan, const PlanProgram& program) : plan_(plan), program_(program) {}

  std::vector<StorageSpan> run() {
    add_persistent();
    for (int32_t at = 0; at < static_cast<int32_t>(program_.instructions.size()); ++at) {
      const Instruction& instruction = program_.instructions[static_cast<size_t>(at)];
      if (instruction.kind == InstructionKind::loop_begin) {
        loops_.push_back({at, {}});
      } else if (instruction.kind == InstructionKind::loop_end) {
        for (const size_t span : loops_.back().outer) spans_[span].end = std::max(spans_[span].end, at + 1);
        loops_.pop_back();
      } else {
        read(instruction, at);
      }
    }
    for (const Operand& result : program_.results)
      if (const auto open = open_at(result); open != open_.end())
        spans_[open->second].end = static_cast<int32_t>(program_.instructions.size());
    name_windows();
    return std::move(spans_);
  }

 private:
  // A place in a lower tier.
  using Place = std::pair<Tier, int64_t>;

  struct Loop {
    int32_t begin = 0;
    std::vector<size_t> outer;  // spans from before the loop that it uses
  };

  void add_persistent() {
    for (const PersistentTensor& tensor : plan_.tensors) {
      places_[{tensor.place.tier, tensor.place.offset}] = &tensor;
      if (tensor.place.tier != Tier::device) continue;
      spans_.push_back({tensor.name, class_of(tensor.role), layer_in(tensor.name), tensor.place.offset,
                        storage_bytes(tensor.place.type), 0, static_cast<int32_t>(program_.instructions.size()), true});
    }
  }

  // The persistent tensor that contains the operand.
  const PersistentTensor* persistent(const Operand& operand) const { return tensor_at({operand.tier, operand.offset}); }

  const PersistentTensor* tensor_at(const Place& from) const {
    auto at = places_.upper_bound(from);
    if (at == places_.begin()) return nullptr;
    const PersistentTensor& tensor = *(--at)->second;
    const Operand& place = tensor.place;
    if (place.tier != from.first) return nullptr;
    const bool inside = from.second < place.offset + storage_bytes(place.type);
    return inside || from.second == place.offset ? &tensor : nullptr;
  }

  // The newest span at an operand's offset; none for lower tiers.
  std::map<int64_t, size_t>::const_iterator open_at(const Operand& operand) const {
    return operand.tier == Tier::device ? open_.find(operand.offset) : open_.end();
  }

  // The same if the operand may be a slice of the span's value: the span that begins last, as no other begins where one
  // is alive.
  std::map<int64_t, size_t>::const_iterator open_around(const Operand& operand, const Attrs& attrs) const {
    const auto at = open_at(operand);
    const std::optional<RowSlice> slice = row_slice(attrs);
    if (!slice || operand.type.dims.size() < 2 || operand.type.dims[0] != slice->rows) return at;
    Operand whole = operand;
    whole.offset -= storage_bytes(operand.type) / slice->rows * slice->first;
    const auto around = open_at(whole);
    if (at == open_.end() || around == open_.end()) return at == open_.end() ? around : at;
    return spans_[around->second].begin > spans_[at->second].begin ? around : at;
  }

  void read(const Instruction& instruction, int32_t at) {
    for (const Operand& input : instruction.inputs)
      if (const auto open = open_around(input, instruction.attrs); open != open_.end()) use(open->second, at);
    name_gradients(instruction);
    follow_copy(instruction, at);
    for (size_t i = 0; i < instruction.outputs.size(); ++i) define(instruction, i, at);
    if (instruction.scratch_bytes > 0)
      spans_.push_back({"scratch of " + describe(instruction, 0), MemoryClass::workspace, instruction.block,
                        instruction.scratch_offset, instruction.scratch_bytes, at, at + 1, false});
  }

  void use(size_t span, int32_t at) {
    spans_[span].end = std::max(spans_[span].end, at + 1);
    for (Loop& loop : loops_)
      if (spans_[span].begin < loop.begin) loop.outer.push_back(span);
  }

  // An update reads a weight, its states and its gradient: this is the input of the weight's shape that does not
  // persist, or what that was cast from.
  void name_gradients(const Instruction& instruction) {
    const Operand* weight = nullptr;
    bool updates = false;
    for (const Operand& input : instruction.inputs) {
      const PersistentTensor* tensor = held_in(input, instruction.attrs);
      if (tensor && tensor->role == Role::parameter && !weight) weight = &input;
      updates |= tensor && tensor->role == Role::optimizer;
    }
    if (!updates || !weight) return;
    const std::string& name = held_in(*weight, instruction.attrs)->name;
    for (const Operand& input : instruction.inputs) {
      const auto open = open_around(input, instruction.attrs);
      if (open == open_.end() || input.type.dims != weight->type.dims) continue;
      if (held_in(input, instruction.attrs)) continue;  // the window of the weight or of a state
      if (const auto window = windows_.find(open->second); window != windows_.end()) {
        gradients_[window->second] = name;
        continue;
      }
      const auto cast = cast_from_.find(open->second);
      StorageSpan& span = spans_[cast == cast_from_.end() ? open->second : cast->second];
      span.name = "gradient of " + name;
      span.kind = MemoryClass::gradients;
      span.block = layer_in(name);
    }
  }

  // The persistent tensor that an operand is in, or that it is a window of.
  const PersistentTensor* held_in(const Operand& operand, const Attrs& attrs) const {
    if (const PersistentTensor* tensor = persistent(operand)) return tensor;
    const auto open = open_around(operand, attrs);
    const auto window = open == open_.end() ? windows_.end() : windows_.find(open->second);
    return window == windows_.end() ? nullptr : tensor_at(window->second);
  }

  // What is copied to a lower tier is alive until the copy is waited for. Room on the device from which it starts is a
  // window, too.
  void follow_copy(const Instruction& instruction, int32_t at) {
    if (instruction.op->kind() == OpKind::wait) {
      const auto copied = copied_.find(operand(instruction, "token").offset);
      if (copied == copied_.end()) return;
      use(copied->second, at);
      copied_.erase(copied);
    }
    if (instruction.op->kind() != OpKind::copy_start) return;
    const Operand& to = instruction.outputs.front();
    const auto open = open_at(operand(instruction, "x"));
    if (to.tier == Tier::device || open == open_.end()) return;
    copied_[instruction.outputs.back().offset] = open->second;
    if (rooms_.contains(open->second)) windows_[open->second] = {to.tier, to.offset};
  }

  // What windows hold that do not belong to a persistent tensor: gradients, or activations.
  void name_windows() {
    for (const auto& [span, place] : windows_) {
      StorageSpan& window = spans_[span];
      if (tensor_at(place)) continue;
      const auto gradient = gradients_.find(place);
      const bool known = gradient != gradients_.end();
      window.name = known ? "window of the gradient of " + gradient->second : "window of activations";
      window.kind = known ? MemoryClass::gradients : MemoryClass::activations;
      if (known) window.block = layer_in(gradient->second);
    }
  }

  void define(const Instruction& instruction, size_t index, int32_t at) {
    const Operand& output = instruction.outputs[index];
    if (output.tier != Tier::device || persistent(output)) return;
    const auto open = open_at(output);
    // Computed in place of an input: the same storage continues.
    if (open != open_.end() &&
        std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                    [&](const Operand& input) { return input.tier == output.tier && input.offset == output.offset; }))
      return use(open->second, at);
    if (instruction.op->kind() == OpKind::cast)
      if (const auto from = open_at(operand(instruction, "x")); from != open_.end())
        cast_from_[spans_.size()] = from->second;
    open_[output.offset] = spans_.size();
    if (instruction.op->kind() == OpKind::allocate) rooms_.insert(spans_.size());
    const PersistentTensor* source = nullptr;
    if (index == 0 && instruction.op->kind() == OpKind::copy_start) {
      const Operand& x = operand(instruction, "x");
      windows_[spans_.size()] = {x.tier, x.offset};
      source = persistent(x);
    }
    if (source) {
      spans_.push_back({"window of " + source->name, class_of(source->role), layer_in(source->name), output.offset,
                        storage_bytes(output.type), at, at + 1, false});
      return;
    }
    spans_.push_back({describe(instruction, index), class_made_by(instruction), instruction.block, output.offset,
                      storage_bytes(output.type), at, at + 1, false});
  }

  // Forward values of the batch are data, those of run-time numbers alone (the loss's scale) workspace.
  MemoryClass class_made_by(const Instruction& instruction) const {
    switch (instruction.stage) {
      case Stage::backward:
        return MemoryClass::gradients;
      case Stage::update:
      case Stage::transfer:
        return MemoryClass::workspace;
      case Stage::forward:
      case Stage::recompute:
        break;
    }
    if (instruction.inputs.empty()) return MemoryClass::data;
    const bool of_numbers =
        std::all_of(instruction.inputs.begin(), instruction.inputs.end(), [&](const Operand& input) {
          const PersistentTensor* tensor = persistent(input);
          return tensor && class_of(tensor->role) == MemoryClass::data;
        });
    return of_numbers ? MemoryClass::workspace : MemoryClass::activations;
  }

  // "linear(model.layers.3.mlp.up_proj)": the op and the first weight that it reads.
  std::string describe(const Instruction& instruction, size_t output) const {
    std::string text(op_name(*instruction.op));
    for (const Operand& input : instruction.inputs) {
      const PersistentTensor* tensor = persistent(input);
      if (!tensor || tensor->role != Role::parameter) continue;
      std::string_view name = tensor->name;
      if (name.ends_with(".weight")) name.remove_suffix(7);
      text += fmt::format("({})", name);
      break;
    }
    if (instruction.stage == Stage::recompute) text += " again";
    return output > 0 ? fmt::format("{}, output {}", text, output + 1) : text;
  }

  const Plan& plan_;
  const PlanProgram& program_;
  std::vector<StorageSpan> spans_;
  std::map<Place, const PersistentTensor*> places_;
  std::map<int64_t, size_t> open_;          // the newest span at an offset
  std::map<size_t, size_t> cast_from_;      // a span that a cast made -> the one that it read
  std::set<size_t> rooms_;                  // spans that are only allocated when they begin
  std::map<int64_t, size_t> copied_;        // by the offset of a copy's token: the span that is copied to a lower tier
  std::map<size_t, Place> windows_;         // a span that is a window -> what it is a window of
  std::map<Place, std::string> gradients_;  // where a gradient is in a lower tier -> its weight
  std::vector<Loop> loops_;
};

}  // namespace

std::string_view memory_class_name(MemoryClass kind) {
  constexpr std::string_view names[] = {"weights",   "gradients", "optimizer", "activations",
                                        "workspace", "data",      "alignment"};
  return names[static_cast<size_t>(kind)];
}

std::vector<StorageSpan> storage_spans(const Plan& plan, const PlanProgram& program) {
  return Reader(plan, program).run();
}

}  // namespace headroom
