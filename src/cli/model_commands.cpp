#include <algorithm>
#include <iostream>

#include "base/bytes.h"
#include "base/error.h"
#include "base/least_bytes.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "data/chat_template.h"
#include "formats/safetensors.h"
#include "planner/search.h"
#include "tokenizer/tokenizer.h"
#include "train/fresh_model.h"
#include "train/objective.h"
#include "train/setup.h"
#include "train/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

int run_init(const FreshModelOptions& options) {
  if (options.dtype != "float32" && options.dtype != "bfloat16")
    throw Error(ErrorKind::usage, fmt::format("--dtype {} is not known", options.dtype), "float32 or bfloat16");
  write_fresh_model(options);
  print_note(fmt::format("wrote {}", options.output_dir.string()));
  return 0;
}

// Least budgets of training with the defaults, fp32 and bf16-mixed.
std::string minimum_text(const ModelFiles& model, const char* precision) {
  TrainOptions options;
  options.model = model.config.source;
  options.precision = precision;
  options.memory = int64_t{1} << 20;
  return format_least_bytes(search_training_plan(training_request(options, model)).plan.minimum_bytes);
}

void describe_weights(const ModelFiles& model) {
  std::error_code status;
  if (!fs::exists(model.directory / "model.safetensors", status) &&
      !fs::exists(model.directory / "model.safetensors.index.json", status)) {
    fmt::print("weights          none in this directory\n");
    return;
  }
  const SafetensorsSet files = SafetensorsSet::open(model.directory);
  check_weights(model.spec, files);
  std::map<std::string, int64_t> bytes;
  for (const auto& [name, tensor] : files.tensors()) bytes[std::string(stored_type_name(tensor.type))] += tensor.bytes;
  for (const auto& [type, total] : bytes) fmt::print("weights          {} {}\n", type, format_bytes(total));
}

void describe_files(const ModelFiles& model) {
  if (model.directory.empty()) {
    fmt::print("weights          none (a bare config.json)\n");
    return;
  }
  describe_weights(model);
  if (const std::optional<Tokenizer> tokenizer = tokenizer_of(model)) {
    fmt::print("tokenizer        {} ids, BOS {}, EOS {}\n", tokenizer->vocab_size(),
               tokenizer->bos_id() ? std::to_string(*tokenizer->bos_id()) : "none",
               tokenizer->eos_id() ? std::to_string(*tokenizer->eos_id()) : "none");
  } else {
    fmt::print("tokenizer        none\n");
  }
  fmt::print("chat template    {}\n", has_chat_template(model.directory) ? "yes" : "no");
}

int run_info(const std::string& path) {
  const ModelFiles model = open_model(path);
  const ModelSpec& spec = model.spec;
  fmt::print("family           {} ({})\n", spec.family, spec.architecture);
  fmt::print("parameters       {}\n", parameter_count(spec));
  fmt::print("geometry         {} layers, hidden {}, {} heads ({} kv) of {}, mlp {}, vocabulary {}, {} positions{}\n",
             spec.layers, spec.hidden, spec.heads, spec.kv_heads, spec.head_dim, spec.intermediate, spec.vocab,
             spec.max_positions, spec.tied ? ", tied head" : "");
  if (spec.experts.count > 0)
    fmt::print("experts          {} of width {} in {} of {} layers, {} per token\n", spec.experts.count,
               spec.experts.intermediate, std::count(spec.experts.layers.begin(), spec.experts.layers.end(), true),
               spec.layers, spec.experts.chosen);
  fmt::print("config dtype     {}\n", model.config.dtype());
  if (!spec.quantization.empty()) {
    fmt::print("quantised        {}: counted, cannot be trained\n", spec.quantization);
    return 0;
  }
  describe_files(model);
  if (spec.objective == Objective::none) {
    fmt::print("head             none: {}\n", head_remedy());
    return 0;
  }
  fmt::print("training needs   at least {} in fp32, {} in bf16-mixed (AdamW, sequence {}, --memory)\n",
             minimum_text(model, "32-true"), minimum_text(model, "bf16-mixed"),
             std::min<int64_t>(512, spec.max_positions));
  const std::string weights = format_bytes(parameter_count(spec) * 4);
  if (spec.objective != Objective::language) {  // no text is generated, no keys and values are kept
    fmt::print("evaluating needs {} of weights in fp32\n", weights);
    return 0;
  }
  const int64_t cache = 2 * spec.layers * spec.kv_heads * spec.head_dim * 4;
  fmt::print("serving needs    {} of weights in fp32, and {} of cache per token of context\n", weights,
             format_bytes(cache));
  return 0;
}

}  // namespace

Command init_command() {
  return {
      "init", "a fresh model with random weights, in Hugging Face layout", [](CLI::App& app) {
        auto options = std::make_shared<FreshModelOptions>();
        scalar(app, "--config", options->config, "config.json of the model")->required();
        scalar(app, "--tokenizer", options->tokenizer, "tokenizer.json, or `bytes`")->capture_default_str();
        scalar(app, "--output-dir", options->output_dir, "where the model goes")->required();
        scalar(app, "--seed", options->seed, "of the weights")->capture_default_str()->check(CLI::NonNegativeNumber);
        scalar(app, "--dtype", options->dtype, "float32 or bfloat16")->capture_default_str();
        return [options] { return run_init(*options); };
      }};
}

Command info_command() {
  return {"info", "family, parameters, tokenizer, what training and serving need at least", [](CLI::App& app) {
            auto path = std::make_shared<std::string>();
            app.add_option("model", *path, "model directory or config.json")->required();
            return [path] { return run_info(*path); };
          }};
}

}  // namespace headroom
