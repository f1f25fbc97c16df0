// Runs steps of a model with the programs of a serving plan.
#pragma once

#include <string>
#include <vector>

#include "engine/park_file.h"
#include "generate/step_runner.h"
#include "runtime/executor.h"

namespace headroom {

class ModelSteps final : public StepRunner {
 public:
  // The executor's plan has the programs of models/serving.h for these limits. It outlives this, and so does `park`,
  // the file of the park area; null: its slots come after the pool, in its tensors.
  ModelSteps(Executor& executor, const StepLimits& limits, ParkFile* park = nullptr);

  const StepLimits& limits() const override { return limits_; }
  std::span<const float> run(const Step& step) override;
  void park_block(int32_t block, int32_t slot) override;
  void restore_block(int32_t slot, int32_t block) override;
  std::span<const float> hidden_states() override;
  // Heap of a runner, without that of a step.
  static int64_t hidden_bytes(const StepLimits& limits) {
    return limits.logits * limits.hidden * static_cast<int64_t>(sizeof(float));
  }

 private:
  // The program for a number of rows, with its inputs and outputs.
  struct Size {
    int64_t rows = 0, logits = 0;
    std::string program;
    TensorView ids, positions, angles, slots, owners, wanted, adapters, result, hidden;
  };
  void check(const Step& step) const;
  void fill_rows(const Step& step, const Size& size);
  // Every row of an encoder sees its whole sequence.
  void see_all(const Step& step);
  void fill_tables(const Step& step);
  void put(const TensorView& to, const std::vector<int32_t>& values);
  void find_pools();
  void copy_block(int64_t from, int64_t to);

  Executor& executor_;
  StepLimits limits_;
  std::vector<Size> sizes_;  // ascending in rows
  ParkFile* park_;
  TensorView tables_;
  // The pool's tensors, if there is a park area: each block's bytes are contiguous.
  struct Pool {
    std::byte* data;
    size_t block_bytes;
    std::span<std::byte> block(int64_t index) const {
      return {data + static_cast<size_t>(index) * block_bytes, block_bytes};
    }
  };
  std::vector<Pool> pools_;
  std::vector<int32_t> ids_, positions_, angles_, slots_, owners_, wanted_, adapters_, blocks_;
  std::vector<float> logits_;  // if the host cannot access the arena
  std::vector<float> hidden_;
  const Size* last_ = nullptr;  // of the last run
};

}  // namespace headroom
