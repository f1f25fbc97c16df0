#include "train/initial_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weights/adapter.h"
#include "weights/fresh_weights.h"
#include "weights/weights.h"

namespace headroom {

namespace {

void fill_zeros(Executor& executor, const TensorView& view) {
  executor.write(view,
                 [](int64_t, std::span<std::byte> piece) { std::fill(piece.begin(), piece.end(), std::byte{0}); });
}

// The initial state of a run other than its weights and adapters.
void begin(Executor& executor) {
  executor.run("load", {});
  for (const PersistentTensor& tensor : executor.plan().tensors)
    if (tensor.role == Role::optimizer) fill_zeros(executor, executor.tensor(tensor.name));
}

bool is_coded(const Plan& plan, const WeightInfo& weight) {
  const PersistentTensor* tensor = plan.tensor(weight.name);
  return tensor && !tensor->place.type.storage.dense();
}

}  // namespace

void fill_fresh(Executor& executor, const ModelFiles& model, const TrainOptions& options,
                std::span<const WeightInfo> missing) {
  read_weights(executor, model.spec, SafetensorsSet::open(model.weights));
  draw_weights(executor, model.spec, missing, options.seed);
  if (options.model.adapter.empty())
    init_adapter(executor, options.seed);
  else
    load_adapter(executor, options.techniques.lora, options.model.adapter);
  begin(executor);
}

void fill_drawn(Executor& executor, const ModelSpec& spec, uint64_t seed) {
  std::vector<WeightInfo> drawn;
  for (const WeightInfo& weight : model_weights(spec)) {
    if (!is_coded(executor.plan(), weight)) {
      drawn.push_back(weight);
      continue;
    }
    const int64_t bytes = storage_bytes(executor.plan().tensor(weight.name)->place.type);
    fill_zeros(executor, {executor.tensor(weight.name).data, DType::u8, std::span<const int64_t>(&bytes, 1)});
  }
  draw_weights(executor, spec, drawn, seed);
  init_adapter(executor, seed);
  begin(executor);
}

void fill_from_checkpoint(Executor& executor, const ModelFiles& model, const TrainOptions& options,
                          const ResumePoint& from, uint64_t data_key, int64_t total_steps, const TrainEvents& events) {
  const std::string name = from.checkpoint.string();
  const RunState& state = from.state;
  load_checkpoint(executor, model, options.techniques.lora, from.checkpoint);
  events.say(state.step < total_steps
                 ? fmt::format("resuming {} after step {} of {}", name, state.step, total_steps)
                 : fmt::format("{} is at step {} of {}: no step is left to train", name, state.step, total_steps));
  for (const std::string& change : changed_options(state.options, options_text(options)))
    events.say("changed since the checkpoint: " + change);
  if (state.data_key != data_key) events.say("changed since the checkpoint: the data files or the tokenizer");
}

}  // namespace headroom
