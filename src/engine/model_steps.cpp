#include "engine/model_steps.h"

#include <algorithm>
#include <cstring>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"
#include "models/serving.h"

namespace headroom {
namespace {

template <typename T>
float number_as(const std::byte* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof number);
  return static_cast<float>(number);
}

float number_of(DType dtype, const std::byte* bytes) {
  if (dtype == DType::bf16) return number_as<bfloat16>(bytes);
  return dtype == DType::f16 ? number_as<float16>(bytes) : number_as<float>(bytes);
}

}  // namespace

ModelSteps::ModelSteps(Executor& executor, const StepLimits& limits)
    : executor_(executor), limits_(limits), tables_(executor.tensor("tables")) {
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
              {}};
    size.result = executor.result(size.program, 0);
    size.hidden = executor.result(size.program, 1);
    sizes_.insert(sizes_.begin(), std::move(size));
  }
  const auto most = static_cast<size_t>(limits.rows);
  for (std::vector<int32_t>* values : {&ids_, &positions_, &angles_, &slots_, &owners_, &wanted_})
    values->reserve(most);
  blocks_.resize(static_cast<size_t>(limits.sequences * limits.table_blocks));
  hidden_.resize(static_cast<size_t>(limits.logits * limits.hidden));
  if (!executor.host_sees(sizes_.back().result)) logits_.resize(static_cast<size_t>(limits.logits * limits.vocab));
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

void ModelSteps::fill_rows(const Step& step, const Size& size) {
  for (std::vector<int32_t>* values : {&ids_, &positions_, &angles_, &slots_, &owners_}) values->clear();
  for (const StepRow& row : step.rows) {
    const int64_t block =
        step.tables[static_cast<size_t>(row.table)][static_cast<size_t>(row.position / limits_.block_tokens)];
    ids_.push_back(row.token);
    positions_.push_back(row.position);
    angles_.push_back(row.position);
    slots_.push_back(static_cast<int32_t>(block * limits_.block_tokens + row.position % limits_.block_tokens));
    owners_.push_back(row.table);
  }
  const auto rows = static_cast<size_t>(size.rows);
  ids_.resize(rows, 0);
  positions_.resize(rows, -1);
  angles_.resize(rows, 0);
  slots_.resize(rows, -1);
  owners_.resize(rows, 0);
  wanted_.assign(step.wanted.begin(), step.wanted.end());
  wanted_.resize(static_cast<size_t>(size.logits), 0);
  put(size.ids, ids_);
  put(size.positions, positions_);
  put(size.angles, angles_);
  put(size.slots, slots_);
  put(size.owners, owners_);
  put(size.wanted, wanted_);
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
  const size_t wanted = step.wanted.size() * static_cast<size_t>(limits_.vocab);
  if (logits_.empty()) return executor_.get<float>(size.result, {}).first(wanted);
  executor_.read(size.result, [this](int64_t first, std::span<const std::byte> piece) {
    std::memcpy(logits_.data() + first, piece.data(), piece.size());
  });
  return std::span<const float>(logits_).first(wanted);
}

std::span<const float> ModelSteps::hidden_states() {
  HR_CHECK(last_, "hidden states before the first step");
  const auto count = static_cast<size_t>(last_->logits * limits_.hidden);
  const DType dtype = last_->hidden.dtype;
  const auto width = static_cast<size_t>(dtype_bytes(dtype));
  executor_.read(last_->hidden, [&](int64_t first, std::span<const std::byte> piece) {
    for (size_t i = 0; i < piece.size() / width; ++i)
      hidden_[static_cast<size_t>(first) + i] = number_of(dtype, piece.data() + i * width);
  });
  return std::span<const float>(hidden_).first(count);
}

}  // namespace headroom
