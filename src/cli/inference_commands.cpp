#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "arguments/inference_options.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "cli/refuse.h"
#include "engine/evaluate.h"
#include "engine/generate.h"
#include "formats/json.h"

namespace headroom {
namespace {

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
  const Evaluation evaluation = evaluate_model(a.options, {{}, notes_of(a), {}});
  if (!evaluation.plan.feasible) return refuse(evaluation.plan);
  print_result(evaluation.result, a.json);
  return 0;
}

void print_times(const Generation& generation) {
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const GenerateTimes& times = generation.times;
  const int64_t grammar = generation.plan->process.grammar + generation.plan->host_process.grammar;
  std::fflush(stdout);  // the text comes first
  print_note(fmt::format(
      "prompt: {} tokens in {:.3f} s, {:.1f} tokens/s; then {} tokens in {:.3f} s, {:.1f} tokens/s; arena {}, "
      "peak planned {}{}",
      times.prompt_tokens, times.prompt_seconds, rate(times.prompt_tokens, times.prompt_seconds), times.decoded_tokens,
      times.decode_seconds, rate(times.decoded_tokens, times.decode_seconds), format_bytes(generation.arena_high_water),
      format_bytes(generation.plan->peak_bytes),
      grammar > 0 ? fmt::format(", grammar and masks {}", format_bytes(grammar)) : ""));
}

// All of it, without the line break that ends the last line.
std::string text_of_stdin() {
  std::string text;
  for (std::array<char, 4096> part{}; std::cin.read(part.data(), part.size()) || std::cin.gcount() > 0;) {
    text.append(part.data(), static_cast<size_t>(std::cin.gcount()));
    if (text.size() > static_cast<size_t>(kMostPromptBytes))
      throw Error(ErrorKind::usage, fmt::format("the prompt on stdin has more than {} bytes", kMostPromptBytes),
                  "give only the part that the model should continue");
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
  const Generation generation = generate_text(a.options, a.generation, {show, notes_of(a), {}});
  if (!generation.feasible) return refuse(*generation.plan);
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
  return {"generate", "generate text from a model, streamed", [](CLI::App& app) {
            auto a = std::make_shared<InferenceArguments>();
            add_generate_options(app, *a);
            return [a] {
              resolve_tiers(a->tiers, a->options.machine, a->options.techniques);
              return run_generate(*a);
            };
          }};
}

Command evaluate_command() {
  return {"evaluate", "the loss of a model on data; also perplexity of tokens, accuracy of classes and masked tokens",
          [](CLI::App& app) {
            auto a = std::make_shared<InferenceArguments>();
            add_evaluate_options(app, *a);
            return [a] {
              resolve_tiers(a->tiers, a->options.machine, a->options.techniques);
              return run_evaluate(*a);
            };
          }};
}

}  // namespace headroom
