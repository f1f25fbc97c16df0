#include <cmath>
#include <csignal>
#include <mutex>

#include "api/translate.h"
#include "arguments/inference_options.h"
#include "arguments/parse.h"
#include "arguments/train_options.h"
#include "base/process_memory.h"
#include "engine/evaluate.h"
#include "engine/generate.h"
#include "engine/plan_training.h"
#include "headroom/engine.h"
#include "planner/explain.h"
#include "train/merge.h"
#include "train/trainer.h"

namespace headroom::api {

struct Plan::Impl {
  headroom::Plan plan;
  std::string explanation;
};

namespace {

// Runs of a process, one after the other: they share its team of threads.
std::mutex& running() {
  static std::mutex instance;
  return instance;
}

// An app with the options of one kind of call.
template <typename Arguments>
struct Parser {
  explicit Parser(void (*add)(CLI::App&, Arguments&)) { add(app, arguments); }
  CLI::App app;
  Arguments arguments;
};

bool is_known(const std::string& name) {
  return has_option(Parser<TrainArguments>(add_train_options).app, name) ||
         has_option(Parser<InferenceArguments>(add_evaluate_options).app, name) ||
         has_option(Parser<InferenceArguments>(add_generate_options).app, name);
}

// The session's options as far as the call knows them, then the call's own.
template <typename Arguments>
void parse(Parser<Arguments>& parser, const std::string& model, const Options& shared, const Options& own) {
  NamedValues values{{"model", model}};
  for (const auto& option : shared)
    if (has_option(parser.app, option.first)) values.push_back(option);
  values.insert(values.end(), own.begin(), own.end());
  parse_values(parser.app, values);
}

TrainOptions train_options(const std::string& model, const Options& shared, const Options& own) {
  Parser<TrainArguments> parser(add_train_options);
  parse(parser, model, shared, own);
  TrainOptions options = resolve(parser.arguments);
  options.caller_bytes = resident_bytes();
  return options;
}

InferenceArguments inference_options(void (*add)(CLI::App&, InferenceArguments&), const std::string& model,
                                     const Options& shared, const Options& own) {
  Parser<InferenceArguments> parser(add);
  parse(parser, model, shared, own);
  InferenceArguments arguments = std::move(parser.arguments);
  resolve_tiers(arguments.tiers, arguments.options.run);
  arguments.options.run.caller_bytes = resident_bytes();
  return arguments;
}

Plan plan_of(headroom::Plan plan, std::string explanation = {}) {
  return Plan(std::make_shared<const Plan::Impl>(Plan::Impl{std::move(plan), std::move(explanation)}));
}

Evaluation evaluation_of(const EvaluationResult& result) {
  Evaluation out{result.loss, std::exp(result.loss), result.targets, {}};
  if (result.hits) out.accuracy = result.accuracy();
  return out;
}

TrainEvents events_of(const Callbacks& callbacks, RunControl& control) {
  TrainEvents events;
  events.planned = [&](const headroom::Plan& plan) {
    if (callbacks.planned) callbacks.planned(plan_of(plan));
  };
  events.note = callbacks.note;
  events.step = [&](const StepReport& r) {
    if (callbacks.step)
      callbacks.step(
          {r.step, r.total_steps, r.loss, r.grad_norm, r.learning_rate, r.tokens, r.seconds, r.resident_bytes});
    if (callbacks.should_stop && callbacks.should_stop()) control.stop_signal = SIGINT;
  };
  events.evaluated = [&](int64_t step, const std::string& set, const EvaluationResult& result) {
    if (callbacks.evaluated) callbacks.evaluated(step, set, evaluation_of(result));
  };
  events.saved = callbacks.saved;
  return events;
}

}  // namespace

bool Plan::feasible() const { return impl_->plan.feasible; }
std::int64_t Plan::budget_bytes() const { return impl_->plan.budget_bytes; }
std::int64_t Plan::peak_bytes() const { return impl_->plan.peak_bytes; }
std::int64_t Plan::minimum_bytes() const { return impl_->plan.minimum_bytes; }
std::int64_t Plan::arena_bytes() const { return impl_->plan.arena_bytes; }
std::int64_t Plan::process_bytes() const { return impl_->plan.process.total(); }
double Plan::step_seconds() const { return impl_->plan.step_seconds; }
std::int64_t Plan::micro_batch_size() const { return impl_->plan.choices.micro_batch; }
std::int64_t Plan::gradient_accumulation_steps() const { return impl_->plan.choices.accumulation; }
std::vector<Change> Plan::changes() const { return changes_of(impl_->plan); }
std::string Plan::json() const { return plan_json(impl_->plan); }
std::string Plan::explanation() const { return impl_->explanation; }

ModelFacts describe_model(const std::string& model) {
  return translating([&]() -> ModelFacts {
    const ModelFiles files = open_model(model);
    const ModelSpec& spec = files.spec;
    return {spec.architecture, spec.family, parameter_count(spec), spec.layers, spec.vocab, spec.max_positions};
  });
}

Session::Session(std::string model, Options options) : model_(std::move(model)), options_(std::move(options)) {
  translating([&] {
    for (const auto& [name, value] : options_)
      if (!is_known(name)) refuse_unknown_option(Parser<TrainArguments>(add_train_options).app, name);
  });
}

Plan Session::plan(const Options& options) const {
  return translating([&] {
    const PlannedTraining planned = plan_training(train_options(model_, options_, options));
    return plan_of(planned.search.plan, explain(planned.request, planned.search));
  });
}

Training Session::train(const Options& options, const Callbacks& callbacks) const {
  return translating([&]() -> Training {
    const std::lock_guard one_at_a_time(running());
    const TrainOptions run = train_options(model_, options_, options);
    if (run.data.empty()) throw headroom::Error(headroom::ErrorKind::usage, "no training data", "give data");
    if (run.output_dir.empty())
      throw headroom::Error(headroom::ErrorKind::usage, "no output directory", "give output-dir");
    RunControl control;
    const TrainResult result = headroom::train(run, events_of(callbacks, control), control);
    if (!result.plan.feasible) throw_refusal(result.plan);
    return {result.steps, result.stopped_by != 0, run.output_dir.string()};
  });
}

Evaluation Session::evaluate(const Options& options, const Callbacks& callbacks) const {
  return translating([&] {
    const std::lock_guard one_at_a_time(running());
    const InferenceArguments arguments = inference_options(add_evaluate_options, model_, options_, options);
    const headroom::Evaluation evaluation = evaluate_model(arguments.options, callbacks.note);
    if (callbacks.planned) callbacks.planned(plan_of(evaluation.plan));
    if (!evaluation.plan.feasible) throw_refusal(evaluation.plan);
    return evaluation_of(evaluation.result);
  });
}

Generation Session::generate(const std::string& prompt, const Options& options,
                             const std::function<bool(std::string_view)>& on_text, const Callbacks& callbacks) const {
  return translating([&] {
    const std::lock_guard one_at_a_time(running());
    InferenceArguments arguments = inference_options(add_generate_options, model_, options_, options);
    arguments.generation.prompt.prompt = prompt;
    Generation out;
    const auto keep = [&](std::string_view piece) {
      out.text += piece;
      return !on_text || on_text(piece);
    };
    const headroom::Generation made = generate_text(arguments.options, arguments.generation, keep, callbacks.note);
    if (!made.feasible) throw_refusal(made.plan);
    out.ids = made.ids;
    out.finish_reason = made.stopped ? "stop" : "length";
    out.prompt_tokens = made.times.prompt_tokens;
    out.prompt_seconds = made.times.prompt_seconds, out.decode_seconds = made.times.decode_seconds;
    return out;
  });
}

void merge(const std::string& model, const std::string& adapter, const std::string& output_dir,
           const std::string& save_dtype) {
  translating([&] {
    const std::lock_guard one_at_a_time(running());
    merge_adapter({model, adapter, output_dir, save_dtype, 0});
  });
}

}  // namespace headroom::api
