#include "engine/text_generator.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "device/device.h"
#include "engine/budget.h"
#include "engine/file_versions.h"
#include "engine/inference_request.h"
#include "engine/process_bytes.h"
#include "engine/session_share.h"
#include "engine/technique_pins.h"
#include "engine/text_shape.h"
#include "generate/stop_texts.h"
#include "passes/precisions.h"
#include "planner/techniques/lora.h"
#include "planner/weight_placement.h"
#include "tokenizer/stream_decoder.h"

namespace headroom {
namespace {

void check_generation(const InferenceOptions& options, const GenerationRequest& request) {
  check_options(options.machine);
  check_options(options.techniques);
  if (const Precision* const precision = find_precision(options.techniques.precision);
      precision && precision->keeps_fp32)
    throw Error(ErrorKind::usage,
                fmt::format("generate --precision {} is not built in this version", options.techniques.precision),
                "use 32-true, bf16-true or 16-true");
  const SamplingOptions& sampling = request.sampling;
  if (!(sampling.temperature >= 0) || !(sampling.top_p > 0 && sampling.top_p <= 1) || sampling.top_k < 0)
    throw Error(ErrorKind::usage,
                fmt::format("--temperature {} --top-p {} --top-k {} is out of range", sampling.temperature,
                            sampling.top_p, sampling.top_k),
                "temperature 0 or more, top-p above 0 up to 1, top-k 0 or more");
  if (std::find(request.stops.begin(), request.stops.end(), "") != request.stops.end())
    throw Error(ErrorKind::usage, "--stop '' is empty", "give the text to stop at");
}

// Tokens as text, up to a stop.
class TextOf {
 public:
  TextOf(const std::vector<std::string>& stops, const Tokenizer& tokenizer,
         const std::function<bool(std::string_view)>& on_text)
      : decoder_(tokenizer), stops_(stops), on_text_(on_text) {}

  // False once a stop text is complete, or the callback ends the text.
  bool add(int32_t token) { return give(stops_.push(decoder_.push(token))) && !stops_.stopped(); }
  void finish() { give(stops_.push(decoder_.finish())) && give(stops_.finish()); }
  bool stopped() const { return stops_.stopped(); }

 private:
  bool give(const std::string& piece) {
    if (wanted_ && !piece.empty() && on_text_) wanted_ = on_text_(piece);
    return wanted_;
  }

  StreamDecoder decoder_;
  StopTexts stops_;
  const std::function<bool(std::string_view)>& on_text_;
  bool wanted_ = true;
};

// The process that the budget of `--memory`, or with a GPU that of `--host-memory`, bounds.
struct HostFigures {
  int64_t budget, arena;
  const ProcessBytes& process;
};

HostFigures host_figures(const Plan& plan) {
  if (plan.facts.is_cpu()) return {plan.budget_bytes, plan.arena_bytes, plan.process};
  return {plan.host.budget_bytes, plan.host.arena_bytes, plan.host_process};
}

}  // namespace

// A model, planned and loaded.
class TextGenerator::Model {
 public:
  // Opens it: config and headers.
  Model(const InferenceOptions& options, const Notes& notes)
      : options_(options),
        opened_(options_, "generate with", notes),
        versions_(versions_now()),
        usable_threads_(available_threads()) {
    refuse_without_text(opened_.files());
  }

  const ModelFiles& files() const { return opened_.files(); }
  PlanRequest request() const {
    PlanRequest request = opened_.request(true);
    pin_stored_embedding_and_head(request, files().spec);
    return request;
  }

  // Plans for a prompt and its text; for many texts if they fit, with the weights on the device as those of one.
  void plan(const PlanRequest& request, const GenerationWork& work, Texts texts) {
    const int64_t tokens = work.prompt_tokens + work.new_tokens, wanted = prompt_chunks(work.prompt_tokens).front();
    plan_ = std::make_shared<const Plan>(generation_plan(request, files().spec, work));
    shape_ = {tokens, {plan_->choices.integer("loss_chunk_rows")}, wanted};
    stays_ = texts == Texts::many && plan_->feasible && plan_->facts.is_cpu() && describe_placement(*plan_).empty();
    if (!stays_) return;
    const TextShape roomy = roomy_shape(files().spec, tokens);
    auto for_many = std::make_shared<const Plan>(texts_plan(request, files(), roomy.positions, roomy.chunks));
    if (!for_many->feasible) return;
    plan_ = std::move(for_many);
    shape_ = roomy;
  }
  const std::shared_ptr<const Plan>& plan() const { return plan_; }

  // Whether it may be used for another text. Not on a GPU, where other calls of the process take what it holds for the
  // driver's; nor with weights below, as where they are depends on the text.
  bool stays() const { return stays_; }

  // Loads by the plan, which is feasible.
  void load(const Tokenizer& tokenizer, const LoraOptions& lora) {
    tokenizer_ = tokenizer;
    device_ = opened_.open_device_for(*plan_, "each token");
    executor_.emplace(*plan_, *device_, nullptr);
    opened_.load(*executor_, lora);
    opened_.forget_notes();  // they are the call's
    stays_ = stays_ && versions_ == versions_now();
    if (stays_) kept_.emplace(kept_bytes());
  }

  // Whether it is what loading it again would give.
  bool serves(const InferenceOptions& options) const {
    InferenceOptions same = options;
    same.machine.caller_bytes = options_.machine.caller_bytes;
    return same == options_ && usable_threads_ == available_threads() && versions_ == versions_now();
  }
  // Without ids if the budget does not hold the preparation.
  PreparedPrompt prepare(const GenerationRequest& asked, int64_t caller_bytes) const {
    return prepare_prompt_beside(asked, files(), *tokenizer_, spare_bytes(caller_bytes));
  }
  bool holds(int64_t prompt, int64_t new_tokens) const {
    return shape_.prefill_for(files().spec, prompt, new_tokens).has_value();
  }
  // On a thread that goes on with a loaded model.
  void enter_thread() {
    set_threads(plan_->facts.threads);
    device_->enter_thread();
  }

  Generation run(const GenerationRequest& asked, const PreparedPrompt& prompt, int64_t new_tokens,
                 const GenerationEvents& events) {
    Generation out;
    out.plan = plan_;
    out.feasible = true;
    GrammarMatcher* matcher = prompt.grammar ? &prompt.grammar->matcher() : nullptr;
    const GenerateOptions options{asked.sampling, new_tokens, stop_ids(asked.stops, *tokenizer_, files()), matcher,
                                  shape_.prefill_for(files().spec, prompt.tokens, new_tokens).value()};
    TextOf text(asked.stops, *tokenizer_, events.text);
    bool wanted = true;
    out.ids = generate_tokens(
        *executor_, *prompt.ids, options,
        [&](int32_t token) {
          wanted = text.add(token);
          enter_thread();  // the caller's function may have made a call with another team
          return wanted;
        },
        &out.times);
    text.finish();
    out.stopped = text.stopped() || (wanted && static_cast<int64_t>(out.ids.size()) < new_tokens) ||
                  (matcher && matcher->must_end());
    out.arena_high_water = executor_->arena_high_water();
    return out;
  }

 private:
  std::string versions_now() const {
    return file_versions(
        std::array{opened_.files().directory, opened_.files().weights, options_.model, options_.adapter});
  }

  // What the budget leaves beside the model for a call whose caller holds so many bytes. Each prompt has its own
  // grammar.
  int64_t spare_bytes(int64_t caller_bytes) const {
    constexpr int64_t kPageTableRatio = 512;
    const HostFigures host = host_figures(*plan_);
    if (host.budget == 0) return INT64_MAX;  // of a GPU's host: none was given
    const int64_t others = host.process.total() - host.process.caller - host.process.grammar + caller_bytes;
    const int64_t spare = host.budget - host.arena - others;
    return spare - spare / kPageTableRatio;
  }

  // What stays between two texts, beside what every phase counts as the program's.
  int64_t kept_bytes() const {
    const HostFigures host = host_figures(*plan_);
    return host.arena + host.process.total() - host.process.caller - std::min(host.process.code, kPrepareCodeBytes);
  }

  const InferenceOptions options_;
  OpenedModel opened_;
  const std::string versions_;
  const int usable_threads_;
  TextShape shape_;
  bool stays_ = false;
  std::shared_ptr<const Plan> plan_;
  std::optional<Tokenizer> tokenizer_;
  std::unique_ptr<Device> device_;
  std::optional<Executor> executor_;
  std::optional<KeptShare> kept_;
};

TextGenerator::TextGenerator(Texts texts) : texts_(texts) {}
TextGenerator::~TextGenerator() = default;

Generation TextGenerator::generate(const InferenceOptions& options, const GenerationRequest& asked,
                                   const GenerationEvents& events) {
  check_generation(options, asked);
  if (model_) {
    if (std::optional<Generation> made = generate_again(options, asked, events)) return std::move(*made);
    model_.reset();
    ::malloc_trim(0);
  }
  return generate_first(options, asked, events);
}

namespace {

void note_grammar(const PreparedPrompt& prompt, const Notes& notes) {
  if (prompt.grammar && notes)
    for (const std::string& text : prompt.grammar->notes()) notes(text);
}

}  // namespace

std::optional<Generation> TextGenerator::generate_again(const InferenceOptions& options, const GenerationRequest& asked,
                                                        const GenerationEvents& events) {
  if (!model_->serves(options)) return {};
  model_->enter_thread();
  const PreparedPrompt prompt = model_->prepare(asked, options.machine.caller_bytes);
  if (!prompt.ids) return {};
  const int64_t new_tokens = count_new_tokens(asked.max_new_tokens, prompt.tokens, model_->files().spec.max_positions);
  if (!model_->holds(prompt.tokens, new_tokens)) return {};
  note_grammar(prompt, events.note);
  return run(std::move(model_), asked, prompt, new_tokens, events);
}

Generation TextGenerator::generate_first(const InferenceOptions& options, const GenerationRequest& asked,
                                         const GenerationEvents& events) {
  auto model = std::make_unique<Model>(options, events.note);
  PlanRequest request = model->request();
  const PreparedPrompt prompt = prepare_prompt(asked, model->files(), request);
  const int64_t new_tokens = count_new_tokens(asked.max_new_tokens, prompt.tokens, model->files().spec.max_positions);
  note_grammar(prompt, events.note);
  model->plan(request, {prompt.tokens, new_tokens}, prompt.ids ? texts_ : Texts::one);
  if (events.planned) events.planned(*model->plan());
  if (!model->plan()->feasible || !prompt.ids) {
    Generation refused;
    refused.plan = model->plan();
    return refused;
  }
  model->load(*prompt.tokenizer, requested_lora(request));
  return run(std::move(model), asked, prompt, new_tokens, events);
}

Generation TextGenerator::run(std::unique_ptr<Model> model, const GenerationRequest& asked,
                              const PreparedPrompt& prompt, int64_t new_tokens, const GenerationEvents& events) {
  Generation out = model->run(asked, prompt, new_tokens, events);
  if (model->stays()) model_ = std::move(model);
  return out;
}

}  // namespace headroom
