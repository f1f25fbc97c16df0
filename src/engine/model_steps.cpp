#include "engine/model_steps.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "models/serving.h"
#include "passes/lora_slots.h"
#include "weights/stored_floats.h"
#include "weights/weights.h"

namespace headroom {
ModelSteps::ModelSteps(Executor& executor, const StepLimits& limits, ParkFile* park)
    : executor_(executor), limits_(limits), park_(park), tables_(executor.tensor("tables")) {
  for (const int64_t rows : step_sizes(limits.rows)) {
    const auto data = [&](std::string_view what) { return executor.tensor(step_data(what, rows)); };
    Size size{rows,
              std::min(rows, limits.logits),
              step_program(rows),
              data("ids"),
              data("positions"),
              data("angles"),
              data("slots"),
              data("owners"),
              data("wanted"),
              {},
              {},
              {}};
    if (limits.adapters > 0) size.adapters = executor.tensor(slot_rows_name(rows));
    size.result = executor.result(size.program, 0);
    size.hidden = executor.result(size.program, limits.whole_sequences ? 0 : 1);
    sizes_.insert(sizes_.begin(), std::move(size));
  }
  const auto most = static_cast<size_t>(limits.rows);
  for (std::vector<int32_t>* values : {&ids_, &positions_, &angles_, &slots_, &owners_, &wanted_, &adapters_})
    values->reserve(most);
  blocks_.resize(static_cast<size_t>(limits.sequences * limits.table_blocks));
  hidden_.resize(static_cast<size_t>(limits.logits * limits.hidden));
  if (!limits.whole_sequences && !executor.host_sees(sizes_.back().result))
    logits_.resize(static_cast<size_t>(limits.logits * limits.vocab));
  if (limits.park_slots > 0) find_pools();
}

void ModelSteps::find_pools() {
  const int64_t blocks = limits_.blocks + (park_ ? 0 : limits_.park_slots);
  for (const PersistentTensor& tensor : executor_.plan().tensors) {
    if (tensor.role != Role::kv_cache) continue;
    const TensorView view = executor_.tensor(tensor.name);
    HR_CHECK(executor_.host_sees(view), "parking blocks that the host does not see");
    const int64_t bytes = storage_bytes(tensor.place.type);
    HR_CHECK(bytes % blocks == 0, "{} bytes of {} blocks", bytes, blocks);
    pools_.push_back({static_cast<std::byte*>(view.data), static_cast<size_t>(bytes / blocks)});
  }
}

void ModelSteps::check(const Step& step) const {
  const auto count = [](const auto& values) { return static_cast<int64_t>(values.size()); };
  HR_CHECK(count(step.rows) >= 1 && count(step.rows) <= limits_.rows, "a step of {} rows", step.rows.size());
  HR_CHECK(count(step.tables) <= limits_.sequences, "a step of {} tables", step.tables.size());
  HR_CHECK(count(step.wanted) <= limits_.logits, "a step with {} rows of logits", step.wanted.size());
  for (const StepRow& row : step.rows) {
    HR_CHECK(row.token >= 0 && row.token < limits_.vocab, "token {} of {}", row.token, limits_.vocab);
    HR_CHECK(row.table >= 0 && row.table < count(step.tables), "table {} of {}", row.table, step.tables.size());
    const auto& table = step.tables[static_cast<size_t>(row.table)];
    HR_CHECK(row.adapter >= -1 && row.adapter < limits_.adapters, "slot {} of {} adapters", row.adapter,
             limits_.adapters);
    HR_CHECK(
        row.position >= 0 && row.position < limits_.positions && row.position / limits_.block_tokens < count(table),
        "position {} in a table of {} blocks", row.position, table.size());
  }
  for (const auto& table : step.tables) {
    HR_CHECK(count(table) <= limits_.table_blocks, "a table of {} blocks", table.size());
    for (const int32_t block : table)
      HR_CHECK(block >= 0 && block < limits_.blocks, "block {} of {}", block, limits_.blocks);
  }
  for (const int32_t row : step.wanted) HR_CHECK(row >= 0 && row < count(step.rows), "logits of row {}", row);
}

void ModelSteps::put(const TensorView& to, const std::vector<int32_t>& values) { executor_.put<int32_t>(to, values); }

void ModelSteps::see_all(const Step& step) {
  for (size_t row = step.rows.size(); row-- > 0;) {
    const bool is_last = row + 1 == step.rows.size() || step.rows[row + 1].table != step.rows[row].table;
    positions_[row] = is_last ? step.rows[row].position : positions_[row + 1];
  }
}

void ModelSteps::fill_rows(const Step& step, const Size& size) {
  for (std::vector<int32_t>* values : {&ids_, &positions_, &angles_, &slots_, &owners_, &adapters_}) values->clear();
  for (const StepRow& row : step.rows) {
    const int64_t block =
        step.tables[static_cast<size_t>(row.table)][static_cast<size_t>(row.position / limits_.block_tokens)];
    ids_.push_back(row.token);
    positions_.push_back(row.position);
    angles_.push_back(row.position);
    slots_.push_back(static_cast<int32_t>(block * limits_.block_tokens + row.position % limits_.block_tokens));
    owners_.push_back(row.table);
    adapters_.push_back(row.adapter);
  }
  if (limits_.whole_sequences) see_all(step);
  const auto rows = static_cast<size_t>(size.rows);
  ids_.resize(rows, 0);
  positions_.resize(rows, -1);
  angles_.resize(rows, 0);
  slots_.resize(rows, -1);
  owners_.resize(rows, 0);
  adapters_.resize(rows, -1);
  wanted_.assign(step.wanted.begin(), step.wanted.end());
  wanted_.resize(static_cast<size_t>(size.logits), 0);
  put(size.ids, ids_);
  put(size.positions, positions_);
  put(size.angles, angles_);
  put(size.slots, slots_);
  put(size.owners, owners_);
  put(size.wanted, wanted_);
  if (limits_.adapters > 0) put(size.adapters, adapters_);
}

void ModelSteps::fill_tables(const Step& step) {
  for (size_t i = 0; i < step.tables.size(); ++i)
    std::copy(step.tables[i].begin(), step.tables[i].end(),
              blocks_.begin() + static_cast<int64_t>(i) * limits_.table_blocks);
  executor_.write(tables_, [this](int64_t first, std::span<std::byte> piece) {
    std::memcpy(piece.data(), blocks_.data() + first, piece.size());
  });
}

std::span<const float> ModelSteps::run(const Step& step) {
  check(step);
  const auto needed = static_cast<int64_t>(step.rows.size());
  const Size& size = *std::find_if(sizes_.begin(), sizes_.end(), [&](const Size& s) { return s.rows >= needed; });
  fill_rows(step, size);
  fill_tables(step);
  executor_.run(size.program, {});
  last_ = &size;
  if (limits_.whole_sequences) return {};
  const size_t wanted = step.wanted.size() * static_cast<size_t>(limits_.vocab);
  if (logits_.empty()) return executor_.get<float>(size.result, {}).first(wanted);
  executor_.read(size.result, [this](int64_t first, std::span<const std::byte> piece) {
    std::memcpy(logits_.data() + first, piece.data(), piece.size());
  });
  return std::span<const float>(logits_).first(wanted);
}

void ModelSteps::copy_block(int64_t from, int64_t to) {
  for (const Pool& pool : pools_) std::ranges::copy(pool.block(from), pool.block(to).begin());
}

void ModelSteps::park_block(int32_t block, int32_t slot) {
  HR_CHECK(block >= 0 && block < limits_.blocks && slot >= 0 && slot < limits_.park_slots, "block {} to slot {}", block,
           slot);
  if (!park_) return copy_block(block, limits_.blocks + slot);
  std::byte* to = park_->buffer().data();
  for (const Pool& pool : pools_) to = std::ranges::copy(pool.block(block), to).out;
  park_->write(slot);
}

void ModelSteps::restore_block(int32_t slot, int32_t block) {
  HR_CHECK(block >= 0 && block < limits_.blocks && slot >= 0 && slot < limits_.park_slots, "slot {} to block {}", slot,
           block);
  if (!park_) return copy_block(limits_.blocks + slot, block);
  park_->read(slot);
  const std::byte* from = park_->buffer().data();
  for (const Pool& pool : pools_) {
    std::copy_n(from, pool.block_bytes, pool.block(block).begin());
    from += pool.block_bytes;
  }
}

std::span<const float> ModelSteps::hidden_states() {
  HR_CHECK(last_, "hidden states before the first step");
  const auto count = static_cast<size_t>(last_->logits * limits_.hidden);
  const DType dtype = last_->hidden.dtype;
  executor_.read(last_->hidden, [&](int64_t first, std::span<const std::byte> piece) {
    const size_t numbers = piece.size() / static_cast<size_t>(dtype_bytes(dtype));
    widen_floats(stored_as(dtype), piece.data(), std::span(hidden_).subspan(static_cast<size_t>(first), numbers));
  });
  return std::span<const float>(hidden_).first(count);
}

}  // namespace headroom
