#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/generation_text.h"
#include "cli/messages.h"
#include "cli/processor_note.h"
#include "cli/refusal.h"
#include "cli/terminal.h"
#include "cli/tier_options.h"
#include "data/token_cache_builder.h"
#include "device/device.h"
#include "formats/json.h"
#include "formats/temporary_place.h"
#include "generate/generator.h"
#include "generate/stop_texts.h"
#include "models/decoder.h"
#include "passes/offload_parameters.h"
#include "passes/prefetch.h"
#include "planner/estimates.h"
#include "planner/inference.h"
#include "planner/search.h"
#include "planner/weight_placement.h"
#include "tokenizer/stream_decoder.h"
#include "train/adapter.h"
#include "train/adapter_files.h"
#include "train/budget.h"
#include "train/evaluation.h"
#include "train/fresh_weights.h"
#include "train/objective.h"
#include "train/setup.h"
#include "train/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct InferenceArguments {
  TrainOptions options;
  TierArguments tiers;
  fs::path adapter;
  PromptOptions prompt;
  std::vector<std::string> stops;
  std::optional<int64_t> max_new_tokens;
  SamplingOptions sampling;
  bool json = false;
  bool quiet = false;
};

void add_inference_options(CLI::App& app, InferenceArguments& a, const char* precisions) {
  scalar(app, "--model", a.options.model, "model directory, or an adapter's, whose config names its base")->required();
  scalar(app, "--adapter", a.adapter, "LoRA adapter to apply: a directory that train or PEFT wrote")->type_name("DIR");
  memory_option(app, "--memory", a.options.memory,
                "budget for all the kernel charges this process (what is available less 10 %); on a GPU for all the "
                "process holds there (what is free)");
  add_tier_options(app, a.options, a.tiers, "weights");
  scalar(app, "--precision", a.options.precision, precisions)->capture_default_str();
  scalar(app, "--device", a.options.device, "cpu")->capture_default_str();
  scalar(app, "--threads", a.options.threads, "threads (those of --profile, else as many as it may use CPUs)");
  scalar(app, "--profile", a.options.profile, "profile file or shipped profile (as train)");
  app.add_flag("--json", a.json, "the result as JSON on stdout");
  app.add_flag("--force", a.options.force, "accept a budget above what the machine can give");
  app.add_flag("--quiet", a.quiet, "no notes");
  const PassInfo* const passes[] = {&kOffloadParameters, &kPrefetch};
  app.footer(technique_help(passes));
}

// A model and the adapter to apply to it.
struct Opened {
  ModelFiles model;
  std::optional<AdapterFiles> adapter;
};

// What the base lacks of its head must be in the adapter.
void check_head(const Opened& opened, const SafetensorsSet& files) {
  const LoraOptions lora = lora_options(*opened.adapter, opened.model.spec);
  for (const WeightInfo& weight : missing_head(opened.model.spec, files))
    if (std::none_of(lora.modules_to_save.begin(), lora.modules_to_save.end(),
                     [&](const std::string& module) { return pattern_means(module, weight.name); }))
      throw Error(
          ErrorKind::format,
          fmt::format("{}: tensor '{}' is missing, in the adapter too", files.directory().string(), weight.name),
          "train with --modules-to-save naming it, or use a base with a head");
}

Opened open_with_weights(const InferenceArguments& a, const char* purpose) {
  const bool named = a.adapter.empty() && is_adapter_directory(a.options.model);
  Opened opened{open_model(named ? base_of_adapter(a.options.model) : a.options.model), std::nullopt};
  const ModelFiles& model = opened.model;
  if (model.directory.empty())
    throw Error(ErrorKind::usage,
                fmt::format("{} is a bare config.json: there are no weights", a.options.model.string()),
                "give a model directory");
  refuse_quantized(model, purpose);
  refuse_without_head(model, purpose);
  if (named || !a.adapter.empty()) opened.adapter = open_adapter(named ? a.options.model : a.adapter);
  const SafetensorsSet files = SafetensorsSet::open(model.directory);
  check_weights(model.spec, files, opened.adapter ? HeadRule::may_miss : HeadRule::required);
  if (opened.adapter) check_head(opened, files);
  return opened;
}

// What the device has to say once kernels are prepared.
void note_device(const InferenceArguments& a, const Device& device) {
  if (const std::string remark = device.remark(); !remark.empty() && !a.quiet) print_note(remark);
}

// Weights, then what the adapter holds, then the program "load".
void load_opened(Executor& executor, const Opened& opened, const LoraOptions& lora) {
  read_weights(executor, opened.model.spec, SafetensorsSet::open(opened.model.directory));
  if (opened.adapter) load_adapter(executor, lora, opened.adapter->tensors.path().parent_path());
  executor.run("load", {});
}

PlanRequest base_request(const InferenceArguments& a, const Opened& opened, bool tokenizer_stays) {
  const ModelFiles& model = opened.model;
  PlanRequest request;
  if (opened.adapter) request.lora = lora_options(*opened.adapter, model.spec);
  TrainOptions here = a.options;
  here.runs_here = true;
  request.facts = device_facts(here, request.profile);
  set_threads(request.facts.threads);
  if (const std::string remark = profile_remark(here, request); !remark.empty() && !a.quiet) print_note(remark);
  if (const std::string unmeasured = estimates(request.profile); !unmeasured.empty() && !a.quiet)
    print_note("note: " + unmeasured);
  request.model = model.spec.family;
  request.parameters = parameter_count(model.spec);
  request.precision = a.options.precision;
  request.budget_bytes = a.options.memory > 0 ? a.options.memory : default_budget(a.options.device, a.options.profile);
  request.host_budget_bytes = a.options.host_memory;
  request.disk_budget_bytes = a.options.disk_memory;
  request.techniques = a.options.techniques;
  ProcessBytes process = process_parts(model, request.facts, tokenizer_stays);
  process.copies = disk_process_bytes(request.facts);
  if (opened.adapter) process.data += adapter_bytes(opened.adapter->tensors.path().parent_path());
  book_process(request, process);
  if (a.options.force) return request;
  if (a.options.device == "cpu") refuse_above_machine("--memory", request.budget_bytes);
  if (cuda_index(a.options.device)) refuse_above_machine("--host-memory", request.host_budget_bytes);
  return request;
}

// With room for the plan; notes say where weights wait, and what a run of `unit` is predicted to take.
std::unique_ptr<Device> open_device_of(const InferenceArguments& a, const Plan& plan, const std::string& unit) {
  std::unique_ptr<Device> device = open_device(a.options.device, plan.facts, a.options.disk_directory);
  for (const Tier tier : kArenaTiers) device->require_room(tier, plan.arenas().of(tier));
  if (a.quiet) return device;
  note_processors(a.options.device, plan.facts.threads);
  if (const std::string placement = describe_placement(plan); !placement.empty())
    print_note(fmt::format("{}; predicted {:.3g} s for {}", placement, plan.step_seconds, unit));
  return device;
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
  check_options(a.options);
  if (a.options.data.empty()) throw Error(ErrorKind::usage, "no data", "give --data FILE");
  const Opened opened = open_with_weights(a, "evaluate");
  const ModelFiles& model = opened.model;
  PlanRequest request = base_request(a, opened, false);
  request.seq_length = sequence_length(a.options, model.spec);
  request.global_batch = 8;
  request.forward = build_training_forward(model.spec, request.global_batch, request.seq_length);
  book_prepare(request, model);
  const Plan plan = plan_evaluation(request);
  if (!plan.feasible) {
    print_refusal(plan);
    return 3;
  }
  const DataOptions data = data_for(model, a.options.data, request.seq_length, chat_bytes_of(plan));
  std::optional<Tokenizer> tokenizer = tokenizer_of(model);
  const fs::path place = temporary_place_on_disk(".", "the data's tokens");
  const TokenCache cache = build_nameless_token_cache(data, tokenizer ? &*tokenizer : nullptr, place);
  tokenizer.reset();
  const RowTargets targets = row_targets(model, a.options.mlm_probability, kEvaluationSeed);
  const std::unique_ptr<Device> device = open_device_of(a, plan, fmt::format("{} sequences", plan.choices.micro_batch));
  BatchPort port;
  Executor executor(plan, *device, &port);
  note_device(a, *device);
  load_opened(executor, opened, request.lora);
  const EvaluationResult result =
      evaluate_cache(executor, port, cache, request.seq_length, plan.choices.micro_batch, request.global_batch, 0,
                     targets, nullptr, model.spec.objective == Objective::classification);
  print_result(result, a.json);
  return 0;
}

void print_times(const GenerateTimes& times, const Plan& plan, int64_t arena) {
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  std::fflush(stdout);  // the text comes first
  print_note(fmt::format(
      "prompt: {} tokens in {:.3f} s, {:.1f} tokens/s; then {} tokens in {:.3f} s, {:.1f} tokens/s; arena {}, "
      "peak planned {}",
      times.prompt_tokens, times.prompt_seconds, rate(times.prompt_tokens, times.prompt_seconds), times.decoded_tokens,
      times.decode_seconds, rate(times.decoded_tokens, times.decode_seconds), format_bytes(arena),
      format_bytes(plan.peak_bytes)));
}

// The text as it is made: streamed to stdout, or kept for JSON.
class ShownText {
 public:
  ShownText(const InferenceArguments& a, const Tokenizer& tokenizer)
      : json_(a.json), decoder_(tokenizer), stops_(a.stops) {}

  // False once a stop text is complete.
  bool add(int32_t token) {
    show(stops_.push(decoder_.push(token)));
    return !stops_.stopped();
  }

  void end(const std::vector<int32_t>& tokens, bool ended) {
    show(stops_.push(decoder_.finish()));
    show(stops_.finish());
    const char* const reason = ended || stops_.stopped() ? "stop" : "length";
    if (json_)
      std::cout << Json{{"ids", tokens}, {"text", text_}, {"finish_reason", reason}}.dump() << '\n';
    else
      fmt::print("\n");
  }

 private:
  void show(const std::string& piece) {
    if (json_) {
      text_ += piece;
      return;
    }
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  }

  bool json_;
  StreamDecoder decoder_;
  StopTexts stops_;
  std::string text_;
};

// A prompt, as far as preparing it fits the budget.
struct PreparedPrompt {
  int64_t tokens = 0;  // where `ids` are lacking the most that it could have and leave room for what is to be made
  std::optional<Tokenizer> tokenizer;
  std::optional<std::vector<int32_t>> ids;
};

// Books what the prompt takes before there is an arena, as it becomes known, and encodes it where that fits.
PreparedPrompt prepare_prompt(const InferenceArguments& a, const ModelFiles& model, PlanRequest& request) {
  PromptOptions prompt = a.prompt;
  PreparedPrompt out;
  read_prompt(prompt, model);
  const auto bytes = static_cast<int64_t>(prompt.prompt.size() + prompt.system.size());
  const int64_t room = model.spec.max_positions - a.max_new_tokens.value_or(1);
  out.tokens = std::max<int64_t>(1, std::min(bytes + 1, room));
  book_prompt(request, model, bytes, rendering_bytes(prompt));
  if (!prepare_fits(request)) return out;
  out.tokenizer = Tokenizer::load(model.directory);
  const std::string text = prompt_text(prompt, *out.tokenizer, model);
  book_encoding(request, *out.tokenizer, static_cast<int64_t>(text.size()));
  if (!prepare_fits(request)) return out;
  out.ids = prompt_ids(prompt, text, *out.tokenizer, model);
  out.tokens = static_cast<int64_t>(out.ids->size());
  ::malloc_trim(0);  // what loading and encoding held
  return out;
}

int run_generate(const InferenceArguments& a) {
  check_options(a.options);
  if (a.options.precision != "32-true" && a.options.precision != "bf16-true")
    throw Error(ErrorKind::usage,
                fmt::format("generate --precision {} is not built in this version", a.options.precision),
                "use 32-true or bf16-true");
  if (!(a.sampling.temperature >= 0) || !(a.sampling.top_p > 0 && a.sampling.top_p <= 1) || a.sampling.top_k < 0)
    throw Error(ErrorKind::usage,
                fmt::format("--temperature {} --top-p {} --top-k {} is out of range", a.sampling.temperature,
                            a.sampling.top_p, a.sampling.top_k),
                "temperature 0 or more, top-p above 0 up to 1, top-k 0 or more");
  if (std::find(a.stops.begin(), a.stops.end(), "") != a.stops.end())
    throw Error(ErrorKind::usage, "--stop '' is empty", "give the text to end before");
  const Opened opened = open_with_weights(a, "generate with");
  const ModelFiles& model = opened.model;
  if (model.spec.objective != Objective::language)
    throw Error(ErrorKind::usage,
                fmt::format("{}: a {} predicts masked tokens or classes and generates no text",
                            model.config.source.string(), model.spec.architecture),
                "use the checkpoint of a causal language model");
  PlanRequest request = base_request(a, opened, true);
  const PreparedPrompt prompt = prepare_prompt(a, model, request);
  const int64_t new_tokens = count_new_tokens(a.max_new_tokens, prompt.tokens, model.spec.max_positions);
  const int64_t positions = prompt.tokens + new_tokens;
  request.seq_length = positions;
  const DType cache = a.options.precision == "bf16-true" ? DType::bf16 : DType::f32;
  const auto build = [&](int64_t chunk) { return build_generation(model.spec, positions, chunk, cache); };
  const Plan plan = plan_generation(request, {prompt.tokens, new_tokens}, prompt_chunks(prompt.tokens), build);
  if (!plan.feasible || !prompt.ids) {
    print_refusal(plan);
    return 3;
  }
  const std::unique_ptr<Device> device = open_device_of(a, plan, "each token");
  Executor executor(plan, *device, nullptr);
  note_device(a, *device);
  load_opened(executor, opened, request.lora);
  GenerateOptions options{a.sampling, new_tokens, stop_ids(a.stops, *prompt.tokenizer, model)};
  ShownText shown(a, *prompt.tokenizer);
  GenerateTimes times;
  const std::vector<int32_t> tokens = generate_tokens(
      executor, *prompt.ids, options, [&](int32_t token) { return shown.add(token); }, &times);
  shown.end(tokens, static_cast<int64_t>(tokens.size()) < new_tokens);
  if (!a.quiet) print_times(times, plan, executor.arena_high_water());
  return 0;
}

}  // namespace

Command generate_command() {
  return {
      "generate", "text from a model, streamed", [](CLI::App& app) {
        auto a = std::make_shared<InferenceArguments>();
        add_inference_options(app, *a, "32-true, or bf16-true: weights and cache in bf16");
        scalar(app, "--prompt", a->prompt.prompt, "text to continue; - reads it from stdin (none: from BOS)");
        app.add_flag(
            "--chat", a->prompt.chat,
            "the prompt is a user's message: the model's chat template renders it, and the text is the answer");
        scalar(app, "--system,--system-prompt", a->prompt.system, "with --chat: the system's message before it");
        app.add_option("--stop", a->stops,
                       "end before this text, or at this special token, beside the model's own ends; repeatable")
            ->allow_extra_args(false);
        scalar(app, "--max-new-tokens", a->max_new_tokens, "tokens to make (128, or what the model's positions leave)");
        scalar(app, "--temperature", a->sampling.temperature, "0 = greedy")->capture_default_str();
        scalar(app, "--top-p", a->sampling.top_p, "least mass of the tokens drawn from")->capture_default_str();
        scalar(app, "--top-k", a->sampling.top_k, "tokens drawn from; 0 = all")->capture_default_str();
        scalar(app, "--seed", a->sampling.seed, "of the draws")->capture_default_str()->check(CLI::NonNegativeNumber);
        return [a] {
          resolve_tiers(a->tiers, a->options);
          return run_generate(*a);
        };
      }};
}

Command evaluate_command() {
  return {
      "evaluate", "loss of a model on data, and perplexity of tokens, accuracy of classes and masked tokens",
      [](CLI::App& app) {
        auto a = std::make_shared<InferenceArguments>();
        add_inference_options(app, *a, "32-true, bf16-mixed or bf16-true");
        app.add_option("--data", a->options.data, "data: .txt, .jsonl, .json or .tsv; repeatable")->type_name("FILE");
        scalar(app, "--max-seq-length", a->options.max_seq_length,
               "tokens per window (the least of the model's and 512)");
        scalar(app, "--mlm-probability", a->options.mlm_probability,
               "masked-LM models: share of the tokens that are predicted")
            ->capture_default_str();
        return [a] {
          resolve_tiers(a->tiers, a->options);
          return run_evaluate(*a);
        };
      }};
}

}  // namespace headroom
