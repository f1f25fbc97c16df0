#include <algorithm>
#include <iostream>

#include "base/bytes.h"
#include "base/least_bytes.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "engine/fresh_model.h"
#include "engine/model_info.h"
#include "weights/objective.h"

namespace headroom {
namespace {

int run_init(const FreshModelOptions& options) {
  write_fresh_model(options);
  print_note(fmt::format("wrote {}", options.output_dir.string()));
  return 0;
}

void print_files(const ModelFiles& model) {
  if (model.directory.empty()) {
    fmt::print("weights          none (a bare config.json)\n");
    return;
  }
  const ModelInfo info = read_model_info(model);
  if (info.weight_bytes.empty()) fmt::print("weights          none in this directory\n");
  for (const auto& [type, total] : info.weight_bytes) fmt::print("weights          {} {}\n", type, format_bytes(total));
  const auto id = [](const std::optional<int32_t>& token) { return token ? std::to_string(*token) : "none"; };
  if (info.tokenizer)
    fmt::print("tokenizer        {} ids, BOS {}, EOS {}\n", info.tokenizer->ids, id(info.tokenizer->bos),
               id(info.tokenizer->eos));
  else
    fmt::print("tokenizer        none\n");
  fmt::print("chat template    {}\n", info.chat_template ? "yes" : "no");
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
    fmt::print("quantised        {}: {}\n", spec.quantization,
               spec.weight_codes.empty() ? "counted, cannot be trained"
               : spec.weight_codes == "int8-int4"
                   ? "int4, activations in int8 per token, for evaluate and generate"
                   : spec.weight_codes + ", for evaluate, generate and training adapters (--lora-r)");
    if (spec.weight_codes.empty()) return 0;
  }
  print_files(model);
  if (spec.objective == Objective::none) {
    fmt::print("head             none: {}\n", head_remedy());
    return 0;
  }
  if (!spec.weight_codes.empty()) return 0;
  fmt::print("training needs   at least {} in fp32, {} in bf16-mixed (AdamW, sequence {}, --memory)\n",
             format_least_bytes(least_budget_in(model, "32-true")),
             format_least_bytes(least_budget_in(model, "bf16-mixed")), std::min<int64_t>(512, spec.max_positions));
  const ServingNeeds needs = serving_needs(spec);
  const std::string weights = format_bytes(needs.weight_bytes);
  if (needs.token_bytes == 0)
    fmt::print("evaluating needs {} of weights in fp32\n", weights);
  else
    fmt::print("serving needs    {} of weights in fp32, and {} of cache per token of context\n", weights,
               format_bytes(needs.token_bytes));
  return 0;
}

}  // namespace

Command init_command() {
  return {"init", "write a fresh model with random weights, in Hugging Face layout", [](CLI::App& app) {
            auto options = std::make_shared<FreshModelOptions>();
            scalar(app, "--config", options->config, "config.json of the model")->required();
            scalar(app, "--tokenizer", options->tokenizer, "tokenizer.json, or `bytes`")->capture_default_str();
            scalar(app, "--output-dir", options->output_dir, "where the model goes")->required();
            scalar(app, "--seed", options->seed, "seed of the weights")
                ->capture_default_str()
                ->check(CLI::NonNegativeNumber);
            scalar(app, "--dtype", options->dtype, "float32, bfloat16 or float16")->capture_default_str();
            return [options] { return run_init(*options); };
          }};
}

Command info_command() {
  return {"info", "family, parameters, tokenizer, the least memory that training and serving need", [](CLI::App& app) {
            auto path = std::make_shared<std::string>();
            app.add_option("model", *path, "model directory or config.json")->required();
            return [path] { return run_info(*path); };
          }};
}

}  // namespace headroom
