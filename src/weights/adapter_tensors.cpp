#include "weights/adapter_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/error.h"
#include "passes/freeze.h"
#include "passes/narrow_products.h"
#include "weights/stored_floats.h"
#include "weights/weights.h"

namespace headroom {
namespace {

bool is_saved_module(const std::string& name, const LoraOptions& options) {
  return !is_weight_copy(name) && std::any_of(options.modules_to_save.begin(), options.modules_to_save.end(),
                                              [&](const std::string& module) { return pattern_means(module, name); });
}

class Tensors {
 public:
  Tensors(const Plan& plan, const LoraOptions& options) : plan_(plan), options_(options) {
    for (const PersistentTensor& tensor : plan.tensors)
      if (is_lora_name(tensor.name)) adapters_.insert(tensor.name);
  }

  std::vector<AdapterTensor> list() {
    for (const PersistentTensor& tensor : plan_.tensors) {
      if (tensor.role != Role::parameter) continue;
      const std::vector<int64_t>& dims = tensor.place.type.dims;
      if (is_lora_name(tensor.name)) {
        if (dims.size() <= 2) tensors_.push_back({tensor.name, dims, {tensor.name}});
      } else if (is_saved_module(tensor.name, options_)) {
        tensors_.push_back({std::string(kAdapterPrefix) + transformers_name(tensor.name), dims, {tensor.name}});
      } else if (const std::optional<ExpertWeight> weight = expert_weight(tensor.name)) {
        add_experts(*weight);
      }
    }
    return std::move(tensors_);
  }

 private:
  // Each parameter once: at its gate or its down.
  void add_experts(ExpertWeight weight) {
    const std::string a = expert_lora_a(weight);
    if (weight.part == ExpertPart::up || !adapters_.contains(a)) return;
    std::vector<std::string> b{expert_lora_b(weight)};
    bool inner = false;
    if (weight.part == ExpertPart::gate) {
      weight.part = ExpertPart::up;
      b.push_back(expert_lora_b(weight));
      weight.part = ExpertPart::down;
      inner = adapters_.contains(expert_lora_a(weight));
    }
    const std::vector<int64_t>& dims = plan_.tensor(a)->place.type.dims;
    const int64_t experts = dims[0], rank = dims[1], out = plan_.tensor(b[0])->place.type.dims[1];
    const std::string module = std::string(kAdapterPrefix) + weight.module + (inner ? ".base_layer" : "");
    tensors_.push_back({module + ".lora_A.weight", {experts * rank, dims[2]}, {a}});
    const int64_t outs = static_cast<int64_t>(b.size()) * out;
    tensors_.push_back({module + ".lora_B.weight", {outs, rank * experts}, std::move(b), experts});
  }

  const Plan& plan_;
  const LoraOptions& options_;
  std::set<std::string> adapters_;
  std::vector<AdapterTensor> tensors_;
};

// `size` elements of expert `expert` from `first` on, in the arena.
TensorView of_expert(const TensorView& part, int64_t expert, int64_t first, std::span<const int64_t> size) {
  const int64_t own = part.count() / part.dims[0];
  return {part.as<std::byte>() + (expert * own + first) * dtype_bytes(part.dtype), part.dtype, size};
}

// Calls body(first, count) for pieces of the elements that a part has per expert; `staging` holds the piece for all
// experts.
template <typename Body>
void each_piece(const TensorView& part, int64_t width, std::span<std::byte> staging, const Body& body) {
  const int64_t experts = part.dims[0], own = part.count() / experts;
  const int64_t step = static_cast<int64_t>(staging.size()) / (experts * width);
  HR_CHECK(step > 0, "{} bytes of staging for {} experts", staging.size(), experts);
  for (int64_t first = 0; first < own; first += step) body(first, std::min(step, own - first));
}

void write_turned(Executor& executor, const std::string& name, const TensorView& part, SafetensorsWriter& writer) {
  const std::span<std::byte> staging = executor.staging("save");
  const int64_t width = dtype_bytes(part.dtype), experts = part.dims[0];
  each_piece(part, width, staging, [&](int64_t first, int64_t count) {
    const std::array<int64_t, 1> size{count};
    for (int64_t expert = 0; expert < experts; ++expert)
      executor.read(of_expert(part, expert, first, size), [&](int64_t from, std::span<const std::byte> piece) {
        std::byte* to = staging.data() + (from * experts + expert) * width;
        for (size_t at = 0; at < piece.size(); at += static_cast<size_t>(width), to += experts * width)
          std::memcpy(to, piece.data() + at, static_cast<size_t>(width));
      });
    writer.write(name, staging.first(static_cast<size_t>(count * experts * width)));
  });
}

// `part` begins at element `begin` of the stored tensor.
void read_turned(Executor& executor, const SafetensorsFile& file, const StoredTensor& stored, int64_t begin,
                 const TensorView& part) {
  const std::span<std::byte> staging = executor.staging("load");
  const int64_t experts = part.dims[0];
  each_piece(part, static_cast<int64_t>(sizeof(float)), staging, [&](int64_t first, int64_t count) {
    const std::span<float> values(reinterpret_cast<float*>(staging.data()), static_cast<size_t>(count * experts));
    read_floats(file, stored, begin + first * experts, values);
    const std::array<int64_t, 1> size{count};
    for (int64_t expert = 0; expert < experts; ++expert)
      executor.write(of_expert(part, expert, first, size), [&](int64_t from, std::span<std::byte> piece) {
        const int64_t here = static_cast<int64_t>(piece.size()) / dtype_bytes(part.dtype);
        for (int64_t i = 0; i < here; ++i) {
          const float value = values[static_cast<size_t>((from + i) * experts + expert)];
          narrow_floats({&value, 1}, stored_as(part.dtype), piece.data() + i * dtype_bytes(part.dtype));
        }
      });
  });
}

}  // namespace

std::vector<AdapterTensor> adapter_tensors(const Plan& plan, const LoraOptions& options) {
  return Tensors(plan, options).list();
}

void write_adapter_tensor(Executor& executor, const AdapterTensor& tensor, SafetensorsWriter& writer) {
  for (const std::string& part : tensor.parts) {
    const TensorView view = executor.tensor(part);
    if (tensor.experts > 0)
      write_turned(executor, tensor.name, view, writer);
    else
      write_tensor(writer, tensor.name, executor, view, stored_as(view.dtype), {});
  }
}

void read_adapter_tensor(Executor& executor, const AdapterTensor& tensor, const SafetensorsFile& file,
                         const StoredTensor& stored) {
  int64_t begin = 0;
  for (const std::string& part : tensor.parts) {
    const TensorView view = executor.tensor(part);
    if (tensor.experts > 0)
      read_turned(executor, file, stored, begin, view);
    else
      read_tensor(executor, file, stored, view);
    begin += view.count();
  }
}

}  // namespace headroom
