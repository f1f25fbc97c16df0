#include "engine/generate.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/process_memory.h"
#include "engine/generation_grammar.h"
#include "engine/inference_request.h"
#include "engine/process_bytes.h"
#include "generate/stop_texts.h"
#include "passes/precisions.h"
#include "planner/search.h"
#include "planner/techniques/lora.h"
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

// A prompt, prepared as far as the budget allows.
struct PreparedPrompt {
  int64_t tokens = 0;  // without `ids`: an upper bound that leaves room for the new tokens
  std::optional<Tokenizer> tokenizer;
  std::optional<std::vector<int32_t>> ids;
  std::unique_ptr<GenerationGrammar> grammar;  // null: any text
};

// Books the prompt's memory before there is an arena, as it becomes known, and encodes the prompt if it fits.
PreparedPrompt prepare_prompt(const GenerationRequest& asked, const ModelFiles& model, PlanRequest& request) {
  const PromptOptions& prompt = asked.prompt;
  PreparedPrompt out;
  check_prompt(prompt, model);
  const auto bytes = static_cast<int64_t>(prompt.prompt.size() + prompt.system.size());
  const int64_t room = model.spec.max_positions - asked.max_new_tokens.value_or(1);
  out.tokens = std::max<int64_t>(1, std::min(bytes + 1, room));
  const std::optional<GrammarSource> grammar = grammar_source(asked.grammar);
  book_prompt(request, model, bytes, rendering_bytes(prompt));
  if (grammar) book_making(request, GenerationGrammar::making_bound(*grammar, file_bytes(model, "tokenizer.json")));
  if (!prepare_fits(request)) return out;
  out.tokenizer = Tokenizer::load(model.directory);
  if (grammar) {
    out.grammar = std::make_unique<GenerationGrammar>(*grammar, *out.tokenizer, model.spec.vocab,
                                                      stop_ids(asked.stops, *out.tokenizer, model));
    book_grammar(request, *out.grammar);
  }
  const std::string text = prompt_text(prompt, *out.tokenizer, model);
  book_encoding(request, *out.tokenizer, static_cast<int64_t>(text.size()));
  if (!prepare_fits(request)) return out;
  out.ids = prompt_ids(prompt, text, *out.tokenizer, model);
  out.tokens = static_cast<int64_t>(out.ids->size());
  release_what_is_behind();  // the memory of loading and encoding
  return out;
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

void run_generation(const OpenedModel& opened, const PlanRequest& request, const GenerationRequest& asked,
                    const PreparedPrompt& prompt, int64_t new_tokens,
                    const std::function<bool(std::string_view)>& on_text, Generation& out) {
  const std::unique_ptr<Device> device = opened.open_device_for(out.plan, "each token");
  Executor executor(out.plan, *device, nullptr);
  opened.load(executor, requested_lora(request));
  GrammarMatcher* matcher = prompt.grammar ? &prompt.grammar->matcher() : nullptr;
  const GenerateOptions options{asked.sampling, new_tokens, stop_ids(asked.stops, *prompt.tokenizer, opened.files()),
                                matcher};
  TextOf text(asked.stops, *prompt.tokenizer, on_text);
  bool wanted = true;
  out.ids = generate_tokens(
      executor, *prompt.ids, options, [&](int32_t token) { return wanted = text.add(token); }, &out.times);
  text.finish();
  out.stopped = text.stopped() || (wanted && static_cast<int64_t>(out.ids.size()) < new_tokens) ||
                (matcher && matcher->must_end());
  out.arena_high_water = executor.arena_high_water();
}

}  // namespace

Generation generate_text(const InferenceOptions& options, const GenerationRequest& asked,
                         const std::function<bool(std::string_view)>& on_text, const Notes& notes) {
  check_generation(options, asked);
  const OpenedModel opened(options, "generate with", notes);
  const ModelFiles& model = opened.files();
  refuse_without_text(model);
  PlanRequest request = opened.request(true);
  const PreparedPrompt prompt = prepare_prompt(asked, model, request);
  const int64_t new_tokens = count_new_tokens(asked.max_new_tokens, prompt.tokens, model.spec.max_positions);
  Generation out;
  if (prompt.grammar && notes)
    for (const std::string& note : prompt.grammar->notes()) notes(note);
  out.plan = generation_plan(request, model.spec, {prompt.tokens, new_tokens});
  out.feasible = out.plan.feasible && prompt.ids;
  if (out.feasible) run_generation(opened, request, asked, prompt, new_tokens, on_text, out);
  return out;
}

}  // namespace headroom
