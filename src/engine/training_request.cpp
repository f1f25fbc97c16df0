#include "engine/training_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/device_facts.h"
#include "engine/process_bytes.h"
#include "engine/technique_pins.h"
#include "models/decoder.h"
#include "passes/offload_optimizer.h"
#include "train/schedule.h"

namespace headroom {

int64_t sequence_length(const BatchOptions& options, const ModelSpec& spec) {
  const int64_t length =
      options.max_seq_length > 0 ? options.max_seq_length : std::min<int64_t>(spec.max_positions, 512);
  if (length > spec.max_positions)
    throw Error(ErrorKind::usage,
                fmt::format("--max-seq-length {} is above the model's {} positions", length, spec.max_positions),
                "give a shorter length");
  return length;
}

namespace {

Graph forward_graph(const TrainOptions& options, ModelSpec spec, int64_t seq_length) {
  if (options.model.dropout == "off") spec.dropout = {};
  return build_training_forward(spec, options.data.global_batch_size, seq_length);
}

// The estimate of the curvature is that of the cross entropy alone.
void refuse_curvature_of_balance(const OptimizerSettings& optimizer, const ModelSpec& spec) {
  if (spec.experts.balance == 0 || curvature_interval(optimizer) == 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("--optim {} estimates the curvature of a loss whose labels are drawn; this model's has a "
                          "second part, which balances its experts",
                          optimizer.optimizer()),
              "\"output_router_logits\": false in config.json, or another optimizer");
}

// A paged optimizer's states are kept in a lower tier if one is given and nothing else is set.
void page_states(const std::string& optimizer, PlanRequest& request) {
  if (request.host_budget_bytes == 0 && request.disk_budget_bytes == 0) return;
  request.techniques.try_emplace(std::string(kOffloadOptimizer.name), "on",
                                 fmt::format("named by --optim {}", optimizer));
}

}  // namespace

PlanRequest training_request(const TrainOptions& options, const ModelFiles& model) {
  check_options(options);
  refuse_quantized(model, "train", QuantizedRule::codes_are_read);
  if (model.spec.weight_codes == "int8-int4")
    throw Error(
        ErrorKind::usage,
        fmt::format("{} rounds its activations at run time and cannot be trained further", model.directory.string()),
        "evaluate and generate take it; train the model that it was made of, or adapters over one that "
        "`headroom quantize --weights int4` makes of it");
  PlanRequest request;
  request.facts = device_facts(options.machine, request.profile);
  request.model = model.spec.family;
  request.parameters = parameter_count(model.spec);
  request.seq_length = sequence_length(options.data, model.spec);
  request.forward = forward_graph(options, model.spec, request.seq_length);
  request.global_batch = options.data.global_batch_size;
  request.optimizer = optimizer_settings(options.optimizer);
  refuse_curvature_of_balance(request.optimizer, model.spec);
  request.clips = options.techniques.max_grad_norm > 0;
  request.arithmetic_fixed = options.techniques.arithmetic == "fixed";
  request.techniques = technique_pins(options.techniques, options.data.micro_batch_size, model.spec);
  pin_stored_codes(request, model.spec);
  request.budget_bytes = options.machine.memory;
  request.host_budget_bytes = options.machine.host_memory;
  request.disk_budget_bytes = options.machine.disk_memory;
  if (request.optimizer.paged()) page_states(options.optimizer.optim, request);
  book_training(request, options, model);
  return request;
}

}  // namespace headroom
