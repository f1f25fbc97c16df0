#include "ir/capabilities.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

Capabilities& Capabilities::add(Capability capability, int version) {
  HR_CHECK(version > 0 && !has(capability), "capability {} of version {} is added", capability.name, version);
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name > capability.name; });
  entries_.insert(at, {capability.name, version});
  return *this;
}

int Capabilities::version(Capability capability) const {
  for (const Entry& entry : entries_)
    if (entry.name == capability.name) return entry.version;
  return 0;
}

bool Capabilities::cover(const Capabilities& others) const {
  return std::all_of(others.entries_.begin(), others.entries_.end(),
                     [&](const Entry& entry) { return version({entry.name}) >= entry.version; });
}

Capabilities Capabilities::shared_with(const Capabilities& others) const {
  Capabilities shared;
  for (const Entry& entry : entries_)
    if (const int version = std::min(entry.version, others.version({entry.name})); version > 0)
      shared.entries_.push_back({entry.name, version});
  return shared;
}

}  // namespace headroom
