#include "engine/adapter_slots.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "formats/safetensors_header.h"
#include "passes/lora.h"
#include "passes/lora_targets.h"
#include "weights/stored_floats.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostSlots = 1024;
constexpr int64_t kMostRank = 512;
constexpr int64_t kUsualRank = 16;
constexpr int64_t kConfigBytes = 64 << 10;
constexpr int64_t kConfigFactor = 40;   // of its text: its parsed form
constexpr int64_t kTensorText = 512;    // of one tensor in a header
constexpr int64_t kWantedBytes = 2048;  // of a weight's three names, shapes and targets while a file is checked
constexpr int64_t kPieceFloats = 4096;  // on the stack

void check_range(const char* option, std::optional<int64_t> value, int64_t most) {
  if (value && (*value < 1 || *value > most))
    throw Error(ErrorKind::usage, fmt::format("{} {} is out of range", option, *value),
                fmt::format("give 1 to {}", most));
}

AdapterCaps caps_of(const ModelSpec& spec) {
  return {kConfigBytes, 16384 + 2 * kTensorText * static_cast<int64_t>(checkpoint_weights(spec).size())};
}

// Reads config and header, without blocking on a pipe.
AdapterFiles open_files(const fs::path& directory, const ModelSpec& spec) {
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    std::error_code status;
    if (!fs::is_regular_file(directory / name, status))
      throw Error(ErrorKind::usage, fmt::format("{} has no file {}", directory.string(), name),
                  "give the folder of a LoRA adapter");
  }
  return open_adapter(directory, caps_of(spec));
}

// Its targets, full names of modules. Refuses those without slots.
std::vector<std::string> slot_targets(const AdapterFiles& adapter, const ModelSpec& spec) {
  const std::string where = adapter.tensors.path().parent_path().string();
  if (adapter.decomposed)
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: use_dora is set: its magnitudes scale the base's products, which all slots share", where),
        "serve it alone (--adapter), or a model that `headroom merge` makes of it");
  const LoraOptions options = lora_options(adapter, spec);
  if (!options.modules_to_save.empty())
    throw Error(ErrorKind::usage,
                fmt::format("{} trained {} in full, which a slot cannot hold", where, options.modules_to_save.front()),
                "serve it alone (--adapter), or a model that `headroom merge` makes of it");
  for (const auto& [name, tensor] : adapter.tensors.tensors()) {
    if (name.find(".experts.") != std::string::npos)
      throw Error(ErrorKind::usage, fmt::format("{} adapts experts ({}), which have no slots", where, name),
                  "serve it alone (--adapter), or a model that `headroom merge` makes of it");
    if (tensor.type != StoredType::f32 && tensor.type != StoredType::bf16 && tensor.type != StoredType::f16)
      throw Error(ErrorKind::format, fmt::format("{}: '{}' is not F32, BF16 or F16", where, name),
                  "store the adapter in one of these");
  }
  if (options.targets.empty())
    throw Error(ErrorKind::format, fmt::format("{} has no matrices", where), "give a LoRA adapter");
  return options.targets;
}

void check_rank(const AdapterFiles& adapter, int64_t most) {
  if (adapter.rank <= most) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} has rank {}, the slots hold {}", adapter.tensors.path().parent_path().string(),
                          adapter.rank, most),
              adapter.rank <= kMostRank ? fmt::format("--max-lora-rank {}", adapter.rank)
                                        : "serve it alone (--adapter), or a model that `headroom merge` makes of it");
}

void check_options(const LoraSlotOptions& options) {
  check_range("--max-loras", options.max_loras, kMostSlots);
  check_range("--max-lora-rank", options.max_rank, kMostRank);
  const auto count = static_cast<int64_t>(options.adapters.size());
  if (count > options.max_loras.value_or(kMostSlots))
    throw Error(ErrorKind::usage,
                fmt::format("--lora-modules names {} adapters, --max-loras {} slots", count,
                            options.max_loras.value_or(kMostSlots)),
                fmt::format("--max-loras {}, at most {}", count, kMostSlots));
}

void narrow_into(const TensorView& view, int64_t at, std::span<const float> values) {
  narrow_floats(values, stored_as(view.dtype), view.as<std::byte>() + at * dtype_bytes(view.dtype));
}

void clear(const TensorView& view, int64_t at, int64_t count) {
  const int64_t width = dtype_bytes(view.dtype);
  std::memset(view.as<std::byte>() + at * width, 0, static_cast<size_t>(count * width));
}

// Stores A [rank, in] unchanged.
void read_down(const SafetensorsFile& file, const StoredTensor& stored, const TensorView& into, int64_t at) {
  float piece[kPieceFloats];
  for (int64_t first = 0; first < stored.elements(); first += kPieceFloats) {
    const std::span<float> values(piece, static_cast<size_t>(std::min(kPieceFloats, stored.elements() - first)));
    read_floats(file, stored, first, values);
    narrow_into(into, at + first, values);
  }
}

// Stores B [out, rank] transposed.
void read_up(const SafetensorsFile& file, const StoredTensor& stored, const TensorView& into, int64_t at) {
  float piece[kPieceFloats], column[kPieceFloats];
  const int64_t outs = stored.shape[0], rank = stored.shape[1], step = kPieceFloats / rank;
  for (int64_t first = 0; first < outs; first += step) {
    const int64_t count = std::min(step, outs - first);
    read_floats(file, stored, first * rank, {piece, static_cast<size_t>(count * rank)});
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t i = 0; i < count; ++i) column[i] = piece[i * rank + k];
      narrow_into(into, at + k * outs + first, {column, static_cast<size_t>(count)});
    }
  }
}

}  // namespace

LoraSlots planned_slots(const LoraSlotOptions& options, const ModelSpec& spec, DType dtype) {
  LoraSlots slots;
  if (!options.wanted()) return slots;
  check_options(options);
  int64_t rank = 0;
  std::vector<std::string> named;
  for (const NamedAdapter& adapter : options.adapters) {
    const AdapterFiles files = open_files(adapter.directory, spec);
    const std::vector<std::string> targets = slot_targets(files, spec);
    check_rank(files, options.max_rank.value_or(kMostRank));
    rank = std::max(rank, files.rank);
    named.insert(named.end(), targets.begin(), targets.end());
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  slots.count = options.max_loras.value_or(std::max<int64_t>(1, static_cast<int64_t>(options.adapters.size())));
  slots.rank = options.max_rank.value_or(rank > 0 ? rank : kUsualRank);
  slots.dtype = dtype;
  if (!options.targets.empty())
    slots.targets = options.targets;
  else if (!named.empty())
    slots.targets = named;
  for (const std::string& module : named)
    if (std::none_of(slots.targets.begin(), slots.targets.end(),
                     [&](const std::string& target) { return target_means(target, module); }))
      throw Error(ErrorKind::usage,
                  fmt::format("an adapter of --lora-modules has matrices of {}, which has no slots", module),
                  "leave --lora-target-modules out, or name it too");
  return slots;
}

int64_t adapter_loading_bytes(const LoraSlots& slots, const ModelSpec& spec) {
  if (slots.count == 0) return 0;
  const auto weights = static_cast<int64_t>(checkpoint_weights(spec).size());
  return kConfigFactor * kConfigBytes + kHeaderFactor * caps_of(spec).header_bytes + weights * kWantedBytes;
}

AdapterSlots::AdapterSlots(Executor& executor, const ModelSpec& spec, const LoraSlots& slots)
    : spec_(spec), slots_(slots) {
  for (const WeightInfo& weight : model_weights(spec)) {
    const std::string a = slot_name(weight.name, 'A'), b = slot_name(weight.name, 'B');
    if (!executor.plan().tensor(a)) continue;
    targets_.push_back(
        {lora_name(weight.name, 'A'), lora_name(weight.name, 'B'), executor.tensor(a), executor.tensor(b)});
    HR_CHECK(executor.host_sees(targets_.back().a_slots), "slots that the host does not see");
  }
  scales_ = executor.tensor(kSlotScales);
}

AdapterFiles AdapterSlots::open(const fs::path& directory) const {
  AdapterFiles adapter = open_files(directory, spec_);
  slot_targets(adapter, spec_);
  check_rank(adapter, slots_.rank);
  for (const auto& stored : adapter.tensors.tensors()) {
    const std::string& name = stored.first;
    const bool known = std::any_of(targets_.begin(), targets_.end(),
                                   [&](const Target& target) { return target.a == name || target.b == name; });
    if (!known)
      throw Error(ErrorKind::usage, fmt::format("{}: '{}' belongs to a module without slots", directory.string(), name),
                  "--lora-target-modules naming it, or all-linear, plans them when the server starts");
  }
  return adapter;
}

void AdapterSlots::load(int64_t slot, const fs::path& directory) {
  HR_CHECK(slot >= 0 && slot < slots_.count, "slot {} of {}", slot, slots_.count);
  const AdapterFiles adapter = open(directory);
  for (const Target& target : targets_) {
    const int64_t ins = target.a_slots.dims[2], outs = target.b_slots.dims[2], rank = slots_.rank;
    const StoredTensor *a = adapter.tensors.find(target.a), *b = adapter.tensors.find(target.b);
    const int64_t used = a && b ? adapter.rank : 0;
    if (used > 0) {
      read_down(adapter.tensors, *a, target.a_slots, slot * rank * ins);
      read_up(adapter.tensors, *b, target.b_slots, slot * rank * outs);
    }
    clear(target.a_slots, (slot * rank + used) * ins, (rank - used) * ins);
    clear(target.b_slots, (slot * rank + used) * outs, (rank - used) * outs);
  }
  scales_.as<float>()[slot] = static_cast<float>(adapter.factor());
}

}  // namespace headroom
