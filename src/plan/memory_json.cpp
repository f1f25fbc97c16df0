#include <nlohmann/json.hpp>

#include "plan/step_memory.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

// The timeline and the layers are most of the file: a row each, as arrays.
Json timeline_row(const TimelinePoint& point) {
  Json row{point.begin, stage_name(point.stage), point.block};
  for (const int64_t bytes : point.bytes) row.push_back(bytes);
  return row;
}

Json layer_row(const LayerBytes& layer) {
  Json row{layer.layer};
  for (const int64_t bytes : layer.bytes) row.push_back(bytes);
  return row;
}

// One element a line, so that the file can be read and compared.
std::string rows(const Json& array) {
  std::string text = "[";
  for (size_t i = 0; i < array.size(); ++i)
    text += (i ? ",\n  " : "\n  ") + array[i].dump(-1, ' ', false, Json::error_handler_t::replace);
  return text + "]";
}

}  // namespace

std::string memory_json(const Plan& plan, const StepMemory& memory, const std::vector<BudgetPoint>& frontier) {
  Json classes = Json::array(), points = Json::array(), groups = Json::array(), tensors = Json::array();
  Json layers = Json::array(), budgets = Json::array();
  for (size_t i = 0; i < kMemoryClasses; ++i) classes.push_back(memory_class_name(static_cast<MemoryClass>(i)));
  for (const TimelinePoint& point : memory.points) points.push_back(timeline_row(point));
  for (const TensorGroup& g : memory.groups)
    groups.push_back({{"name", g.name},
                      {"class", memory_class_name(g.kind)},
                      {"count", g.count},
                      {"bytes", g.bytes},
                      {"first_layer", g.first_layer},
                      {"last_layer", g.last_layer}});
  for (const StorageSpan& t : memory.tensors)
    tensors.push_back({{"name", t.name},
                       {"class", memory_class_name(t.kind)},
                       {"layer", t.block},
                       {"bytes", t.bytes},
                       {"offset", t.offset},
                       {"made", t.begin},
                       {"freed", t.end}});
  for (const LayerBytes& layer : memory.layers) layers.push_back(layer_row(layer));
  for (const BudgetPoint& point : frontier)
    budgets.push_back({{"peak_bytes", point.peak_bytes},
                       {"packed", point.assigned},
                       {"step_seconds", point.step_seconds},
                       {"setting", point.setting}});
  const Json peak{{"instruction", memory.peak_instruction},
                  {"op", memory.peak_op},
                  {"layer", memory.peak_block},
                  {"stage", stage_name(memory.peak_stage)},
                  {"bytes", memory.peak}};
  const Json head{{"arena_bytes", plan.arena_bytes},
                  {"process_bytes", plan.process.total()},
                  {"program", memory.program},
                  {"instructions", memory.instructions}};
  std::string text = "{" + head.dump().substr(1, head.dump().size() - 2);
  text += ",\n \"classes\": " + classes.dump() + ",\n \"points\": " + rows(points) + ",\n \"peak\": " + peak.dump();
  text += ",\n \"groups\": " + rows(groups) + ",\n \"tensors\": " + rows(tensors) + ",\n \"layers\": " + rows(layers);
  return text + ",\n \"frontier\": " + rows(budgets) + "}\n";
}

}  // namespace headroom
