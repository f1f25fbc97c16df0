// A tiny model on disk, its text as a token cache, and a training run driven step by step through the executor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../formats/temporary_directory.h"
#include "base/threads.h"
#include "data/token_cache_builder.h"
#include "device/device.h"
#include "engine/fresh_model.h"
#include "engine/training_request.h"
#include "ir/tier_bytes.h"
#include "planner/search.h"
#include "train/schedule.h"
#include "weights/adapter.h"
#include "weights/evaluation.h"
#include "weights/model_files.h"
#include "weights/weights.h"

namespace headroom {

inline constexpr const char* kTinyConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":258,"hidden_size":32,
"intermediate_size":64,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
"rms_norm_eps":1e-5,"rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":true,"initializer_range":0.2,"torch_dtype":"float32"})";

// A table larger than 64 KiB and than every matrix of a layer: 2050 rows of 128 bytes.
inline constexpr const char* kTinyTableConfig =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":2050,"hidden_size":32,
"intermediate_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
"rms_norm_eps":1e-5,"rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":true,"initializer_range":0.2,"torch_dtype":"float32"})";

// Two of three experts in the first and last layer.
inline constexpr const char* kTinyExpertsConfig =
    R"({"architectures":["Qwen3MoeForCausalLM"],"model_type":"qwen3_moe","vocab_size":258,"hidden_size":32,
"intermediate_size":64,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,
"num_experts":3,"num_experts_per_tok":2,"moe_intermediate_size":40,"mlp_only_layers":[1],"norm_topk_prob":true,
"rms_norm_eps":1e-5,"rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":true,"initializer_range":0.2,"torch_dtype":"float32"})";

// Writes directory/model and directory/data.txt.
inline void write_tiny_model(const TemporaryDirectory& directory, const char* config = kTinyConfig) {
  directory.write("config.json", config);
  write_fresh_model({directory / "config.json", "bytes", directory / "model", 7, "float32"});
  std::string text;
  for (int line = 0; line < 60; ++line)
    text += "line " + std::to_string(line * line) + " of a text that is learned byte by byte\n";
  directory.write("data.txt", text);
}

inline TrainOptions tiny_options(const TemporaryDirectory& directory) {
  TrainOptions options;
  options.model.path = directory / "model";
  options.data.train = {directory / "data.txt"};
  options.saving.output_dir = directory / "out";
  options.data.global_batch_size = 6;
  options.data.max_seq_length = 32;
  options.schedule.max_steps = 3;
  options.schedule.learning_rate = 1e-2;
  options.machine.threads = 1;
  options.machine.memory = int64_t{1} << 30;
  options.machine.profile = "cpu-avx2";
  return options;
}

class TinyRun {
 public:
  using MakeDevice = std::function<std::unique_ptr<Device>(const DeviceFacts&)>;

  // `host_budget`: bytes of a second tier, a separate arena in this process's memory. `change` modifies the plan before
  // it is executed.
  TinyRun(const TrainOptions& options, const std::filesystem::path& scratch,
          const MakeDevice& make_device = make_cpu_device, int64_t host_budget = 0,
          const std::function<void(Plan&)>& change = {})
      : options_(options), optimizer_(optimizer_settings(options.optimizer)), model_(open_model(options.model.path)) {
    set_threads(1);
    PlanRequest request = training_request(options, model_);
    if (options.machine.device == "cpu")
      request.facts = cpu_facts(1);  // all instruction sets that this process may use
    request.host_budget_bytes = host_budget;
    plan_ = search_training_plan(request).plan;
    if (change) change(plan_);
    DataOptions data;
    data.files = options.data.train;
    data.max_seq_length = plan_.choices.seq_length;
    data.vocab_size = model_.spec.vocab;
    const Tokenizer tokenizer = Tokenizer::bytes();
    build_token_cache(data, &tokenizer, scratch);
    cache_ = std::make_unique<TokenCache>(TokenCache::open(scratch));
    reader_ = std::make_unique<BatchReader>(*cache_, SampleOrder(cache_->sequences(), 42, true),
                                            plan_.choices.seq_length, options.data.global_batch_size);
    device_ = make_device(plan_.facts);
    executor_ = std::make_unique<Executor>(plan_, *device_, &port_);
  }

  // Loads weights and clears the optimizer's states as a run does, in an arena filled with the pattern. Then refills
  // everything that a program may not rely on: every byte outside the persistent tensors.
  void begin(std::byte pattern) {
    for (const Tier tier : kArenaTiers) fill(tier, 0, plan_.arenas().of(tier), pattern);
    begin();
    for (const Tier tier : kArenaTiers) fill_gaps(tier, pattern);
  }

  // Loads weights and clears the optimizer's states as a run does, on any device.
  void begin() {
    read_weights(*executor_, model_.spec, SafetensorsSet::open(model_.directory));
    if (options_.techniques.lora.rank > 0) init_adapter(*executor_, options_.seed);
    executor_->run("load", {});
    for (const PersistentTensor& tensor : plan_.tensors)
      if (tensor.role == Role::optimizer)
        executor_->write(executor_->tensor(tensor.name), [](int64_t, std::span<std::byte> piece) {
          std::fill(piece.begin(), piece.end(), std::byte{0});
        });
  }

  // One optimizer step; returns its loss.
  double step(int64_t number) {
    const SampleRange range = samples_of_step(number - 1, cache_->sequences(), options_.data.global_batch_size);
    const int64_t targets = reader_->begin(range);
    port_.set_reader(reader_.get());
    const double rate = options_.schedule.learning_rate;
    executor_->put<float>(executor_->tensor("hyper"),
                          step_scalars(options_, optimizer_, rate, number, targets).values());
    const int64_t micro_batch = plan_.choices.micro_batch;
    const Trips trips[] = {{"micro_batches", (range.count + micro_batch - 1) / micro_batch}};
    executor_->run("train_step", trips);
    double buffer[2];
    const std::span<const double> sums = executor_->get<double>(executor_->result("train_step", 0), buffer);
    return sums[0] / sums[1];
  }

  // Over the first batches, all for 0.
  double evaluate(int64_t batches = 0) {
    return evaluate_cache(*executor_, port_, *cache_, plan_.choices.seq_length, plan_.choices.micro_batch,
                          options_.data.global_batch_size, batches)
        .loss;
  }

  // Weights and optimizer states, as bytes.
  std::map<std::string, std::string> state() const {
    std::map<std::string, std::string> bytes;
    for (const PersistentTensor& tensor : plan_.tensors)
      if (tensor.role == Role::parameter || tensor.role == Role::optimizer) {
        executor_->read(executor_->tensor(tensor.name), [&](int64_t, std::span<const std::byte> piece) {
          bytes[tensor.name].append(reinterpret_cast<const char*>(piece.data()), piece.size());
        });
      }
    return bytes;
  }

  const Plan& plan() const { return plan_; }
  Executor& executor() { return *executor_; }

 private:
  // Fills the bytes [begin, end) of a tier's arena.
  void fill(Tier tier, int64_t begin, int64_t end, std::byte pattern) {
    if (begin >= end) return;
    const int64_t count = end - begin;
    const TensorView bytes{executor_->arena(tier).data() + begin, DType::u8, {&count, 1}};
    executor_->write(bytes, [&](int64_t, std::span<std::byte> piece) { std::ranges::fill(piece, pattern); });
  }

  // Fills a tier's bytes outside its persistent tensors.
  void fill_gaps(Tier tier, std::byte pattern) {
    std::vector<std::pair<int64_t, int64_t>> kept;
    for (const PersistentTensor& tensor : plan_.tensors)
      if (tensor.place.tier == tier)
        kept.emplace_back(tensor.place.offset, tensor.place.offset + storage_bytes(tensor.place.type));
    std::sort(kept.begin(), kept.end());
    int64_t end = 0;
    for (const auto& [first, last] : kept) {
      fill(tier, end, first, pattern);
      end = std::max(end, last);
    }
    fill(tier, end, plan_.arenas().of(tier), pattern);
  }

  TrainOptions options_;
  OptimizerSettings optimizer_;
  ModelFiles model_;
  Plan plan_;
  std::unique_ptr<TokenCache> cache_;
  std::unique_ptr<BatchReader> reader_;
  BatchPort port_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace headroom
