#include "engine/evaluate.h"

#include "base/error.h"
#include "data/token_cache_builder.h"
#include "engine/process_bytes.h"
#include "engine/training_request.h"
#include "formats/temporary_place.h"
#include "models/decoder.h"
#include "planner/inference.h"
#include "planner/techniques/lora.h"
#include "weights/objective.h"

namespace headroom {
namespace {

constexpr int64_t kBatch = 8;  // most sequences at once

PlanRequest evaluation_request(const InferenceOptions& options, const OpenedModel& opened) {
  const ModelFiles& model = opened.files();
  PlanRequest request = opened.request(false);
  request.seq_length = sequence_length(options.data, model.spec);
  request.global_batch = kBatch;
  request.forward = build_training_forward(model.spec, request.global_batch, request.seq_length);
  book_prepare(request, model);
  return request;
}

// An unnamed file on disk, so that nothing is left behind.
TokenCache tokens_of(const InferenceOptions& options, const ModelFiles& model, const PlanRequest& request,
                     const Plan& plan) {
  const DataOptions data = data_for(model, options.data.train, request.seq_length, chat_bytes_of(plan));
  const std::optional<Tokenizer> tokenizer = tokenizer_of(model);
  return build_nameless_token_cache(data, tokenizer ? &*tokenizer : nullptr,
                                    temporary_place_on_disk(".", "the data's tokens"));
}

}  // namespace

Evaluation evaluate_model(const InferenceOptions& options, const EvaluationEvents& events) {
  check_options(options.data);
  check_options(options.machine);
  check_options(options.techniques);
  if (options.data.train.empty()) throw Error(ErrorKind::usage, "no data", "give --data FILE");
  const OpenedModel opened(options, "evaluate", events.note);
  const ModelFiles& model = opened.files();
  const PlanRequest request = evaluation_request(options, opened);
  Evaluation evaluation{plan_evaluation(request), {}};
  const Plan& plan = evaluation.plan;
  if (events.planned) events.planned(plan);
  if (!plan.feasible) return evaluation;
  const TokenCache cache = tokens_of(options, model, request, plan);
  const RowTargets targets = row_targets(model, options.data.mlm_probability, kEvaluationSeed);
  const std::unique_ptr<Device> device =
      opened.open_device_for(plan, fmt::format("{} sequences", plan.choices.micro_batch));
  BatchPort port;
  Executor executor(plan, *device, &port);
  opened.load(executor, requested_lora(request));
  evaluation.result =
      evaluate_cache(executor, port, cache, request.seq_length, plan.choices.micro_batch, request.global_batch, 0,
                     targets, nullptr, model.spec.objective == Objective::classification, events.progress);
  return evaluation;
}

}  // namespace headroom
