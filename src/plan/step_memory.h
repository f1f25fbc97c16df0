// The memory of one program in a size that does not grow with the model: a timeline of at most kTimelinePoints points,
// and the peak by tensor group, by single tensor and by layer. docs/report.md describes memory.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/storage_spans.h"

namespace headroom {

constexpr int32_t kTimelinePoints = 480;

// Instructions [stretch_begin(i), stretch_begin(i + 1)) are point i of a timeline of `count` instructions.
int32_t timeline_points(int32_t count);
int32_t stretch_begin(int32_t point, int32_t count);

// An interval of instructions, when it holds most.
struct TimelinePoint {
  int32_t begin = 0;  // first instruction of the interval
  int32_t block = kNone;
  Stage stage = Stage::forward;
  ClassBytes bytes{};
};

struct LayerBytes {
  int32_t layer = kNone;  // kNone: outside the layers
  ClassBytes bytes{};
};

// A point of the planner's frontier: with a budget of peak_bytes a step takes step_seconds.
struct BudgetPoint {
  int64_t peak_bytes = 0;
  bool assigned = false;  // else a lower bound, which assigned offsets exceed by at most 0.3 %
  double step_seconds = 0;
  std::string setting;
};

struct StepMemory {
  std::string program;
  int32_t instructions = 0;
  std::vector<TimelinePoint> points;
  int32_t peak_instruction = 0;
  std::string peak_op;
  int32_t peak_block = kNone;
  Stage peak_stage = Stage::forward;
  ClassBytes peak{};                 // alive at that time; they sum to the plan's lower bound
  std::vector<TensorGroup> groups;   // largest first; the rest beyond the limit is summed in one row per class
  std::vector<StorageSpan> tensors;  // the largest alive at the peak, largest first
  std::vector<LayerBytes> layers;    // ascending
};

// Pure. Throws InternalError when the plan has no such program.
StepMemory step_memory(const Plan& plan, std::string_view program);

// The tensors alive at the peak of the arena, in whichever program that is: every group, largest first.
std::vector<TensorGroup> peak_tensors(const Plan& plan);

// memory.json.
std::string memory_json(const Plan& plan, const StepMemory& memory, const std::vector<BudgetPoint>& frontier);

}  // namespace headroom
