#include <string>
#include <vector>

#include "doctor/snapshot/clean_text.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

using Json = nlohmann::json;

Json json_of(const MemoryHolder& holder) {
  return {{"place", holder.place},
          {"class", memory_class_name(holder.kind)},
          {"bytes", holder.bytes},
          {"count", holder.count},
          {"stack", holder.stack}};
}

Json json_of(const std::vector<MemoryHolder>& holders) {
  Json out = Json::array();
  for (const MemoryHolder& holder : holders) out.push_back(json_of(holder));
  return out;
}

Json json_of(const MemoryInstant& instant) {
  Json classes = Json::object();
  for (size_t i = 0; i < kMemoryClasses; ++i)
    if (instant.by_class[i] > 0) classes[memory_class_name(static_cast<MemoryClass>(i))] = instant.by_class[i];
  return {{"event", instant.event},
          {"seconds", instant.seconds},
          {"allocated_bytes", instant.allocated_bytes},
          {"reserved_bytes", instant.reserved_bytes},
          {"allocations", instant.allocations},
          {"classes", std::move(classes)},
          {"places", json_of(instant.holders)},
          {"stacks", json_of(instant.stack_holders)}};
}

Json json_of(const Fragmentation& f) {
  return {{"reserved_bytes", f.reserved_bytes},
          {"allocated_bytes", f.allocated_bytes},
          {"rounding_bytes", f.rounding_bytes},
          {"inactive_bytes", f.inactive_bytes},
          {"inactive_blocks", f.inactive_blocks},
          {"largest_inactive_bytes", f.largest_inactive},
          {"releasable_bytes", f.releasable_bytes},
          {"private_pool_bytes", f.private_pool_bytes},
          {"other_stream_bytes", f.other_stream_bytes},
          {"pending_free_bytes", f.pending_free_bytes},
          {"expandable_bytes", f.expandable_bytes},
          {"request_bytes", f.request_bytes},
          {"usable_bytes", f.usable_bytes},
          {"unusable_bytes", f.unusable_bytes}};
}

Json json_of(const OutOfMemoryEvent& failure) {
  return {{"event", failure.event},
          {"seconds", failure.seconds},
          {"requested_bytes", failure.requested_bytes},
          {"device_free_bytes", failure.device_free_bytes},
          {"allocated_bytes", failure.allocated_bytes},
          {"reserved_bytes", failure.reserved_bytes},
          {"place", failure.place},
          {"class", memory_class_name(failure.kind)}};
}

Json json_of(const AliveGrowth& growth) {
  if (growth.unit.empty()) return nullptr;
  return {{"unit", growth.unit},
          {"lows_bytes", growth.lows},
          {"grows", growth.grows},
          {"bytes_per_unit", growth.bytes_per_unit},
          {"places", json_of(growth.holders)}};
}

Json json_of(const DeviceAnalysis& device) {
  Json failures = Json::array();
  for (const OutOfMemoryEvent& failure : device.failures) failures.push_back(json_of(failure));
  Json out = {{"device", device.device},
              {"events", device.events},
              {"seconds", device.seconds},
              {"complete_history", device.complete_history},
              {"allocations_before", device.allocations_before},
              {"bytes_before", device.bytes_before},
              {"unmatched_events", device.unmatched_events},
              {"peak", json_of(device.peak)},
              {"peak_reserved_bytes", device.peak_reserved_bytes},
              {"end", json_of(device.end)},
              {"end_fragmentation", json_of(device.end_fragmentation)},
              {"failures", std::move(failures)},
              {"failure_count", device.failure_count},
              {"growth", json_of(device.growth)}};
  out["failure"] = device.failure ? json_of(*device.failure) : Json(nullptr);
  out["failure_fragmentation"] = device.failure_fragmentation ? json_of(*device.failure_fragmentation) : Json(nullptr);
  return out;
}

template <typename Value>
Json optional_json(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

nlohmann::json snapshot_json(const SnapshotAnalysis& analysis) {
  Json devices = Json::array();
  for (const DeviceAnalysis& device : analysis.devices) devices.push_back(json_of(device));
  const AllocatorSettings& settings = analysis.settings;
  return {{"source", clean_text(analysis.source)},
          {"devices", std::move(devices)},
          {"has_trace", analysis.has_trace},
          {"has_frames", analysis.has_frames},
          {"pinned_host_bytes", analysis.pinned_host_bytes},
          {"allocator_settings",
           {{"text", settings.text},
            {"expandable_segments", optional_json(settings.expandable_segments)},
            {"max_split_size", optional_json(settings.max_split_size)},
            {"garbage_collection_threshold", optional_json(settings.garbage_collection_threshold)}}},
          {"notes", analysis.notes}};
}

}  // namespace headroom::doctor
