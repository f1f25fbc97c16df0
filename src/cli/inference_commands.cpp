#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "cli/refuse.h"
#include "cli/tier_options.h"
#include "data/token_cache_builder.h"
#include "engine/evaluate.h"
#include "engine/generate.h"
#include "formats/json.h"
#include "passes/offload_parameters.h"
#include "passes/prefetch.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct InferenceArguments {
  InferenceOptions options;
  TierArguments tiers;
  GenerationRequest generation;
  bool json = false;
  bool quiet = false;
};

void add_inference_options(CLI::App& app, InferenceArguments& a, const char* precisions) {
  scalar(app, "--model", a.options.run.model, "model directory, or an adapter's, whose config names its base")
      ->required();
  scalar(app, "--adapter", a.options.adapter, "LoRA adapter to apply: a directory that train or PEFT wrote")
      ->type_name("DIR");
  memory_option(app, "--memory", a.options.run.memory,
                "budget for all the kernel charges this process (what is available less 10 %); on a GPU for all the "
                "process holds there (what is free)");
  add_tier_options(app, a.options.run, a.tiers, "weights");
  scalar(app, "--precision", a.options.run.precision, precisions)->capture_default_str();
  scalar(app, "--device", a.options.run.device, "cpu")->capture_default_str();
  scalar(app, "--threads", a.options.run.threads, "threads (those of --profile, else as many as it may use CPUs)");
  scalar(app, "--profile", a.options.run.profile, "profile file or shipped profile (as train)");
  app.add_flag("--json", a.json, "the result as JSON on stdout");
  app.add_flag("--force", a.options.run.force, "accept a budget above what the machine can give");
  app.add_flag("--quiet", a.quiet, "no notes");
  const PassInfo* const passes[] = {&kOffloadParameters, &kPrefetch};
  app.footer(technique_help(passes));
}

Notes notes_of(const InferenceArguments& a) {
  if (a.quiet) return {};
  return print_note;
}

void print_result(const EvaluationResult& result, bool json) {
  const double perplexity = std::exp(result.loss);  // of classes only for programs, which expect the key
  if (json) {
    Json values{{"loss", result.loss}, {"perplexity", perplexity}, {"tokens", result.targets}};
    if (result.hits) values["accuracy"] = result.accuracy();
    std::cout << values.dump() << '\n';
    return;
  }
  fmt::print("loss {:.6f}  {}{}{} {}\n", result.loss,
             result.classes ? "" : fmt::format("perplexity {:.4f}  ", perplexity),
             result.hits ? fmt::format("accuracy {:.4f}  ", result.accuracy()) : "",
             result.classes ? "samples" : "tokens", result.targets);
}

int run_evaluate(const InferenceArguments& a) {
  const Evaluation evaluation = evaluate_model(a.options, notes_of(a));
  if (!evaluation.plan.feasible) return refuse(evaluation.plan);
  print_result(evaluation.result, a.json);
  return 0;
}

void print_times(const Generation& generation) {
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const GenerateTimes& times = generation.times;
  std::fflush(stdout);  // the text comes first
  print_note(fmt::format(
      "prompt: {} tokens in {:.3f} s, {:.1f} tokens/s; then {} tokens in {:.3f} s, {:.1f} tokens/s; arena {}, "
      "peak planned {}",
      times.prompt_tokens, times.prompt_seconds, rate(times.prompt_tokens, times.prompt_seconds), times.decoded_tokens,
      times.decode_seconds, rate(times.decoded_tokens, times.decode_seconds), format_bytes(generation.arena_high_water),
      format_bytes(generation.plan.peak_bytes)));
}

// All of it, at most as much as a row of data may have, without the line break that ends the last line.
std::string text_of_stdin() {
  std::string text;
  for (std::array<char, 4096> part{}; std::cin.read(part.data(), part.size()) || std::cin.gcount() > 0;) {
    text.append(part.data(), static_cast<size_t>(std::cin.gcount()));
    if (text.size() > static_cast<size_t>(kRowLimitBytes))
      throw Error(ErrorKind::usage, fmt::format("the prompt on stdin has more than {} bytes", kRowLimitBytes),
                  "give the part that the model is to continue");
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// The text as it is made goes to stdout; for JSON it is kept.
int run_generate(InferenceArguments a) {
  if (a.generation.prompt.prompt == "-") a.generation.prompt.prompt = text_of_stdin();
  std::string kept;
  const auto show = [&](std::string_view piece) {
    if (a.json) return kept += piece, true;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
    return true;
  };
  const Generation generation = generate_text(a.options, a.generation, show, notes_of(a));
  if (!generation.feasible) return refuse(generation.plan);
  if (a.json)
    std::cout << Json{{"ids", generation.ids},
                      {"text", kept},
                      {"finish_reason", generation.stopped ? "stop" : "length"}}
                     .dump()
              << '\n';
  else
    fmt::print("\n");
  if (!a.quiet) print_times(generation);
  return 0;
}

}  // namespace

Command generate_command() {
  return {"generate", "text from a model, streamed", [](CLI::App& app) {
            auto a = std::make_shared<InferenceArguments>();
            add_inference_options(app, *a, "32-true, or bf16-true: weights and cache in bf16");
            scalar(app, "--prompt", a->generation.prompt.prompt,
                   "text to continue; - reads it from stdin (none: from BOS)");
            app.add_flag(
                "--chat", a->generation.prompt.chat,
                "the prompt is a user's message: the model's chat template renders it, and the text is the answer");
            scalar(app, "--system,--system-prompt", a->generation.prompt.system,
                   "with --chat: the system's message before it");
            app.add_option("--stop", a->generation.stops,
                           "end before this text, or at this special token, beside the model's own ends; repeatable")
                ->allow_extra_args(false);
            scalar(app, "--max-new-tokens", a->generation.max_new_tokens,
                   "tokens to make (128, or what the model's positions leave)");
            scalar(app, "--temperature", a->generation.sampling.temperature, "0 = greedy")->capture_default_str();
            scalar(app, "--top-p", a->generation.sampling.top_p, "least mass of the tokens drawn from")
                ->capture_default_str();
            scalar(app, "--top-k", a->generation.sampling.top_k, "tokens drawn from; 0 = all")->capture_default_str();
            scalar(app, "--seed", a->generation.sampling.seed, "of the draws")
                ->capture_default_str()
                ->check(CLI::NonNegativeNumber);
            return [a] {
              resolve_tiers(a->tiers, a->options.run);
              return run_generate(*a);
            };
          }};
}

Command evaluate_command() {
  return {"evaluate", "loss of a model on data, and perplexity of tokens, accuracy of classes and masked tokens",
          [](CLI::App& app) {
            auto a = std::make_shared<InferenceArguments>();
            add_inference_options(app, *a, "32-true, bf16-mixed or bf16-true");
            app.add_option("--data", a->options.run.data, "data: .txt, .jsonl, .json or .tsv; repeatable")
                ->type_name("FILE");
            scalar(app, "--max-seq-length", a->options.run.max_seq_length,
                   "tokens per window (the least of the model's and 512)");
            scalar(app, "--mlm-probability", a->options.run.mlm_probability,
                   "masked-LM models: share of the tokens that are predicted")
                ->capture_default_str();
            return [a] {
              resolve_tiers(a->tiers, a->options.run);
              return run_evaluate(*a);
            };
          }};
}

}  // namespace headroom
