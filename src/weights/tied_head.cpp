#include "weights/tied_head.h"

#include <algorithm>

#include "base/error.h"
#include "passes/freeze.h"
#include "passes/lora.h"
#include "weights/weights.h"

namespace headroom {
namespace {

std::string in_adapter(const std::string& weight) { return std::string(kAdapterPrefix) + transformers_name(weight); }

bool has_same_values(const SafetensorsFile& file, const StoredTensor& a, const StoredTensor& b) {
  if (a.shape != b.shape) return false;
  constexpr int64_t kPiece = 1 << 16;
  const int64_t count = a.elements();
  std::vector<float> left, right;
  for (int64_t at = 0; at < count; at += kPiece) {
    const auto size = static_cast<size_t>(std::min(kPiece, count - at));
    left.resize(size);
    right.resize(size);
    read_floats(file, a, at, left);
    read_floats(file, b, at, right);
    if (left != right) return false;
  }
  return true;
}

}  // namespace

bool saves_tied_head(const ModelSpec& spec, const LoraOptions& options) {
  return options.rank > 0 && !spec.tied_head.empty() &&
         std::any_of(options.modules_to_save.begin(), options.modules_to_save.end(),
                     [&](const std::string& module) { return pattern_means(module, spec.name("embed")); });
}

void refuse_tied_head_with_bias(const ModelSpec& spec, const LoraOptions& options) {
  if (spec.has("head_bias") && saves_tied_head(spec, options))
    throw Error(
        ErrorKind::usage,
        fmt::format("--modules-to-save names {}, which is tied to the head; PEFT's copy of the head would include "
                    "the head's bias, which is not supported",
                    spec.name("embed")),
        "name other modules, or train without --lora-r");
}

std::string tied_head_in_adapter(const ModelSpec& spec) {
  return spec.tied_head.empty() ? std::string() : in_adapter(spec.tied_head);
}

std::string tied_head_module(const ModelSpec& spec) {
  const std::string module = spec.tied_head.substr(0, spec.tied_head.rfind('.'));
  return module.substr(module.rfind('.') + 1);
}

void check_tied_head(const SafetensorsFile& adapter, const ModelSpec& spec) {
  if (spec.tied_head.empty()) return;
  const std::string embedding = in_adapter(spec.name("embed")), head = in_adapter(spec.tied_head);
  const StoredTensor *a = adapter.find(embedding), *b = adapter.find(head);
  if (!a && !b) return;
  if (a && b && has_same_values(adapter, *a, *b)) return;
  throw Error(
      ErrorKind::format,
      fmt::format("{}: {}, but the model's config.json ties the two (tie_word_embeddings)", adapter.path().string(),
                  a && b ? fmt::format("'{}' and '{}' differ", embedding, head)
                         : fmt::format("'{}' was trained apart from '{}'", a ? embedding : head, a ? head : embedding)),
      "train both as one (in PEFT: ensure_weight_tying), or use a base with a separate head");
}

}  // namespace headroom
