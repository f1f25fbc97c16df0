#include "train/initial_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/adapter.h"
#include "train/fresh_weights.h"
#include "train/weights.h"

namespace headroom {

namespace {

// What a run begins with beside its weights.
void fill_beside_weights(Executor& executor, uint64_t seed) {
  init_adapter(executor, seed);
  executor.run("load", {});
  for (const PersistentTensor& tensor : executor.plan().tensors)
    if (tensor.role == Role::optimizer)
      executor.write(executor.tensor(tensor.name),
                     [](int64_t, std::span<std::byte> piece) { std::fill(piece.begin(), piece.end(), std::byte{0}); });
}

}  // namespace

void fill_fresh(Executor& executor, const ModelFiles& model, std::span<const WeightInfo> missing, uint64_t seed) {
  read_weights(executor, model.spec, SafetensorsSet::open(model.directory));
  draw_weights(executor, model.spec, missing, seed);
  fill_beside_weights(executor, seed);
}

void fill_drawn(Executor& executor, const ModelSpec& spec, uint64_t seed) {
  draw_weights(executor, spec, model_weights(spec), seed);
  fill_beside_weights(executor, seed);
}

void fill_from_checkpoint(Executor& executor, const ModelFiles& model, const TrainOptions& options,
                          const ResumePoint& from, uint64_t data_key, int64_t total_steps, const TrainEvents& events) {
  const std::string name = from.checkpoint.string();
  const RunState& state = from.state;
  load_checkpoint(executor, model, options.techniques.lora, from.checkpoint);
  events.say(state.step < total_steps
                 ? fmt::format("resuming {} after step {} of {}", name, state.step, total_steps)
                 : fmt::format("{} stands at step {} of {}: no step is left to train", name, state.step, total_steps));
  for (const std::string& change : changed_options(state.options, options_text(options)))
    events.say("changed since the checkpoint: " + change);
  if (state.data_key != data_key) events.say("changed since the checkpoint: the data files or the tokenizer");
}

}  // namespace headroom
