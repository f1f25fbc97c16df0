#include "arguments/familiar_names.h"

#include <algorithm>

#include "base/nearest_name.h"

namespace headroom {
namespace {

struct Familiar {
  std::string_view elsewhere;
  std::string_view here;  // the option, then its value if the name implies one
};

constexpr Familiar kFamiliar[] = {
    {"adapter-path", "adapter"},
    {"apply-chat-template", "chat"},
    {"base-model", "model"},
    {"batch-size", "global-batch-size"},
    {"bf16", "precision bf16-mixed"},
    {"block-size", "max-seq-length"},
    {"checkpoint-dir", "model"},
    {"conversation", "chat"},
    {"cutoff-len", "max-seq-length"},
    {"dataset", "data"},
    {"do-sample", "temperature 1"},
    {"dtype", "precision"},
    {"epochs", "num-train-epochs"},
    {"fp16", "precision 16-mixed"},
    {"full-determinism", "attention-order fixed"},
    {"greedy", "temperature 0"},
    {"grammar-file", "grammar"},
    {"guided-choice", "choice"},
    {"guided-grammar", "grammar"},
    {"guided-json", "json-schema"},
    {"guided-regex", "regex"},
    {"json-schema-file", "json-schema"},
    {"lora-rank", "lora-r"},
    {"lr", "learning-rate"},
    {"lr-scheduler", "lr-scheduler-type"},
    {"m", "model"},
    {"max-length", "max-seq-length"},
    {"max-length", "max-new-tokens"},
    {"max-tokens", "max-new-tokens"},
    {"model-name-or-path", "model"},
    {"n", "max-new-tokens"},
    {"n-predict", "max-new-tokens"},
    {"num-epochs", "num-train-epochs"},
    {"o", "output-dir"},
    {"optimizer", "optim"},
    {"output", "output-dir"},
    {"p", "prompt"},
    {"resume", "resume-from-checkpoint true"},
    {"reverse-prompt", "stop"},
    {"sample-packing", "packing true"},
    {"scheduler", "lr-scheduler-type"},
    {"sequence-len", "max-seq-length"},
    {"stop-sequence", "stop"},
    {"stop-strings", "stop"},
    {"t", "threads"},
    {"tf32", "matmul-precision high"},
    {"torch-dtype", "precision"},
    {"train-batch-size", "global-batch-size"},
    {"train-file", "data"},
    {"use-lora", "lora-r 16"},
    {"validation-file", "eval-data"},
    {"warmup-ratio", "warmup-steps"},
};

bool is_there(std::string_view option, std::span<const std::string> names) {
  return std::find(names.begin(), names.end(), option.substr(0, option.find(' '))) != names.end();
}

}  // namespace

std::string familiar_option(std::string_view wrong, std::span<const std::string> names) {
  std::string dashed(wrong);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const Familiar& familiar : kFamiliar)
    if (familiar.elsewhere == dashed && is_there(familiar.here, names)) return std::string(familiar.here);
  const std::string nearest = nearest_name(dashed, names);
  return edit_distance(dashed, nearest) * 2 <= dashed.size() ? nearest : std::string();
}

}  // namespace headroom
