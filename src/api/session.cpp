#include <cmath>
#include <csignal>

#include "api/asked_training.h"
#include "api/parser.h"
#include "api/session.h"
#include "api/translate.h"
#include "arguments/inference_options.h"
#include "arguments/profile_options.h"
#include "engine/evaluate.h"
#include "engine/merge.h"
#include "engine/plan_training.h"
#include "engine/quantize.h"
#include "engine/session_share.h"
#include "engine/train_model.h"
#include "headroom/engine.h"

namespace headroom::api {

// The figures of a plan, without its programs.
struct Plan::Impl {
  bool feasible = false;
  std::int64_t budget_bytes = 0, peak_bytes = 0, minimum_bytes = 0, arena_bytes = 0, process_bytes = 0;
  double step_seconds = 0;
  std::int64_t micro_batch_size = 0, gradient_accumulation_steps = 0;
  std::vector<Change> changes;
  std::string json, explanation;
};

namespace {

// Throws Error(usage) for an option that no call knows.
void check_known(const Options& options) {
  const Parser<TrainArguments> train(add_train_options);
  const Parser<InferenceArguments> evaluate(add_evaluate_options), generate(add_generate_options);
  for (const auto& [name, value] : options)
    if (!has_option(train.app, name) && !has_option(evaluate.app, name) && !has_option(generate.app, name))
      refuse_unknown_option(train.app, name);
}

InferenceArguments inference_options(void (*add)(CLI::App&, InferenceArguments&), const std::string& model,
                                     const Options& shared, const Options& own, const SessionShare& share) {
  Parser<InferenceArguments> parser(add);
  parse(parser, model, shared, own);
  InferenceArguments arguments = std::move(parser.arguments);
  resolve_tiers(arguments.tiers, arguments.options.machine, arguments.options.techniques);
  arguments.options.machine.caller_bytes = share.caller_bytes();
  return arguments;
}

Plan plan_of(const headroom::Plan& plan, std::string explanation = {}) {
  return Plan(std::make_shared<const Plan::Impl>(
      Plan::Impl{plan.feasible, plan.budget_bytes, plan.peak_bytes, plan.minimum_bytes, plan.arena_bytes,
                 plan.process.total(), plan.step_seconds, plan.choices.micro_batch, plan.choices.accumulation,
                 changes_of(plan), plan_json(plan), std::move(explanation)}));
}

Evaluation evaluation_of(const EvaluationResult& result) {
  Evaluation out{result.loss, std::exp(result.loss), result.targets, {}};
  if (result.hits) out.accuracy = result.accuracy();
  return out;
}

// Of a call that works piece by piece and has no result before its end.
WorkProgress progress_of(const Callbacks& callbacks) {
  if (!callbacks.progress && !callbacks.should_stop) return {};
  return [&](int64_t done, int64_t total) {
    if (callbacks.progress) callbacks.progress(done, total);
    if (callbacks.should_stop && callbacks.should_stop())
      throw Error(ErrorKind::stopped, fmt::format("stopped after {} of {}", done, total), "");
  };
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

bool Plan::feasible() const { return impl_->feasible; }
std::int64_t Plan::budget_bytes() const { return impl_->budget_bytes; }
std::int64_t Plan::peak_bytes() const { return impl_->peak_bytes; }
std::int64_t Plan::minimum_bytes() const { return impl_->minimum_bytes; }
std::int64_t Plan::arena_bytes() const { return impl_->arena_bytes; }
std::int64_t Plan::process_bytes() const { return impl_->process_bytes; }
double Plan::step_seconds() const { return impl_->step_seconds; }
std::int64_t Plan::micro_batch_size() const { return impl_->micro_batch_size; }
std::int64_t Plan::gradient_accumulation_steps() const { return impl_->gradient_accumulation_steps; }
std::vector<Change> Plan::changes() const { return impl_->changes; }
std::string Plan::json() const { return impl_->json; }
std::string Plan::explanation() const { return impl_->explanation; }

ModelFacts describe_model(const std::string& model) {
  return translating([&]() -> ModelFacts {
    const ModelFiles files = open_model(model);
    const ModelSpec& spec = files.spec;
    return {spec.architecture, spec.family, parameter_count(spec), spec.layers, spec.vocab, spec.max_positions};
  });
}

Session::Session(std::string model, Options options)
    : impl_(std::make_shared<const Impl>(std::move(model), std::move(options))) {
  translating([&] { check_known(impl_->options); });
}

Plan Session::plan(const Options& options) const {
  return translating([&] {
    const SessionShare share;
    const std::shared_ptr<const Impl> held = impl_;  // a callback may drop the session
    const OtherCall call(held->kept);
    const AskedTraining asked(impl_->model, impl_->options, options, share, ForWhat::plan);
    const PlannedTraining planned = plan_training(asked.options(), asked.model());
    return plan_of(planned.search.plan, explanation(planned));
  });
}

Training Session::train(const Options& options, const Callbacks& callbacks) const {
  return translating([&]() -> Training {
    const SessionShare share;
    const std::shared_ptr<const Impl> held = impl_;  // a callback may drop the session
    const OtherCall call(held->kept);
    const AskedTraining asked(impl_->model, impl_->options, options, share, ForWhat::run);
    RunControl control;
    const TrainResult result = train_model(asked.options(), events_of(callbacks, control), control);
    if (!result.plan.feasible) throw_refusal(result.plan);
    return {result.steps, result.stopped_by != 0, asked.options().saving.output_dir.string()};
  });
}

Evaluation Session::evaluate(const Options& options, const Callbacks& callbacks) const {
  return translating([&] {
    const SessionShare share;
    const std::shared_ptr<const Impl> held = impl_;  // a callback may drop the session
    const OtherCall call(held->kept);
    const InferenceArguments arguments =
        inference_options(add_evaluate_options, impl_->model, impl_->options, options, share);
    const auto planned = [&](const headroom::Plan& plan) {
      if (callbacks.planned) callbacks.planned(plan_of(plan));
    };
    const headroom::Evaluation evaluation =
        evaluate_model(arguments.options, {planned, callbacks.note, progress_of(callbacks)});
    if (!evaluation.plan.feasible) throw_refusal(evaluation.plan);
    return evaluation_of(evaluation.result);
  });
}

Generation Session::generate(const std::string& prompt, const Options& options,
                             const std::function<bool(std::string_view)>& on_text, const Callbacks& callbacks) const {
  return translating([&] {
    const SessionShare share;
    const std::shared_ptr<const Impl> held = impl_;  // a callback may drop the session
    GenerateCall call(held->kept);
    InferenceArguments arguments =
        inference_options(add_generate_options, impl_->model, impl_->options, options, share);
    arguments.generation.prompt.prompt = prompt;
    Generation out;
    GenerationEvents events;
    events.text = [&](std::string_view piece) {
      out.text += piece;
      return !on_text || on_text(piece);
    };
    events.note = callbacks.note;
    events.planned = [&](const headroom::Plan& plan) {
      if (callbacks.planned) callbacks.planned(plan_of(plan));
    };
    const headroom::Generation made = call.generator().generate(arguments.options, arguments.generation, events);
    if (!made.feasible) throw_refusal(*made.plan);
    out.ids = made.ids;
    out.finish_reason = made.stopped ? "stop" : "length";
    out.prompt_tokens = made.times.prompt_tokens;
    out.prompt_seconds = made.times.prompt_seconds, out.decode_seconds = made.times.decode_seconds;
    return out;
  });
}

void Session::release() const {
  const SessionShare share;
  impl_->kept.release();
}

MachineProfile profile(const Options& options, const std::function<void(double)>& progress,
                       const std::function<void(const std::string&)>& note) {
  return translating([&]() -> MachineProfile {
    const SessionShare share;
    Parser<ProfileOptions> parser(add_profile_options);
    parse_values(parser.app, options);
    const MeasuredProfile measured = measure_profile(parser.arguments, {progress, note});
    return {measured.profile.name, measured.path.string(), profile_json(measured.profile)};
  });
}

void merge(const std::string& model, const std::string& adapter, const std::string& output_dir,
           const std::string& save_dtype, std::int64_t memory_bytes, const Callbacks& callbacks) {
  translating([&] {
    const SessionShare share;
    merge_adapter({model, adapter, output_dir, save_dtype, memory_bytes}, progress_of(callbacks));
  });
}

void quantize(const std::string& model, const std::string& output_dir, const std::string& weights,
              std::int64_t memory_bytes, const Callbacks& callbacks) {
  translating([&] {
    const SessionShare share;
    quantize_model({.model = model, .output_dir = output_dir, .weights = weights, .memory = memory_bytes},
                   progress_of(callbacks));
  });
}

}  // namespace headroom::api
