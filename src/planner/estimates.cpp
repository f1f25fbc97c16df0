#include "planner/estimates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "cost/shipped_profiles.h"

namespace headroom {
namespace {

bool is_shipped(const std::string& name) {
  return std::ranges::any_of(shipped_profiles(), [&](const ShippedProfile& shipped) { return shipped.name == name; });
}

}  // namespace

int64_t booked_context_bytes(const Profile& gpu) {
  return gpu.context_bytes > 0 ? gpu.context_bytes : load_profile(kUnmeasuredGpu).context_bytes;
}

std::string estimates(const Profile& profile) {
  if (profile.facts.is_cpu()) return {};
  const std::string context = format_bytes(booked_context_bytes(profile));
  if (is_shipped(profile.name) && profile.sources.empty())
    return fmt::format(
        "{} of the device and {} of the host outside the arenas, and every predicted time, are those of another GPU of "
        "this kind, which the shipped profile {} was measured on: `headroom profile --device cuda:0` measures this one",
        context, format_bytes(profile.host_context_bytes), profile.name);
  if (is_shipped(profile.name))
    return fmt::format(
        "{} of the device and {} of the host outside the arenas, and every predicted time, are estimates of the "
        "shipped profile {}, not measured: `headroom profile --device cuda:0` measures a GPU",
        context, format_bytes(profile.host_context_bytes), profile.name);
  if (profile.context_bytes > 0) return {};
  return fmt::format(
      "{} of the device outside the arena are an estimate, those of the shipped profile {}: profile {} has no "
      "context_bytes, because the driver did not report them when it was measured (as in a container)",
      context, kUnmeasuredGpu, profile.name);
}

std::string estimates_note(const Profile& profile) {
  const std::string unmeasured = estimates(profile);
  return unmeasured.empty() ? unmeasured : "note: " + unmeasured;
}

}  // namespace headroom
