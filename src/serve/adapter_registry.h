// The LoRA adapters that a server knows by name, and the arena slots that hold them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "generate/scheduler.h"

namespace headroom {

struct ServedAdapter {
  std::string name;
  std::filesystem::path directory;
  int32_t slot = -1;
  int32_t prefix = -1;  // SequenceAdapter::prefix
};

// Held by users of the adapter. Its slot keeps its contents until no user is left.
using AdapterUse = std::shared_ptr<const ServedAdapter>;

// The adapter for the scheduler's sequences; for null, the base model.
SequenceAdapter sequence_adapter(const AdapterUse& use);

// How slots are filled; called on the stepping thread. Both throw Error for files that do not fit.
struct SlotFiller {
  std::function<void(const std::filesystem::path&)> check;
  std::function<void(int64_t slot, const std::filesystem::path&)> load;
};

// A slot is free when no name and no sequence uses it. find() and all() may be called by any thread, the others only by
// the stepping thread.
class AdapterRegistry {
 public:
  AdapterRegistry(int64_t slots, SlotFiller filler);

  // Null when there is no adapter with that name.
  AdapterUse find(const std::string& name) const;
  // Sorted by name.
  std::vector<AdapterUse> all() const;

  // Reads the adapter into a free slot. Throws ApiError(503) when no slot is free, and the filler's Errors.
  void load(const std::string& name, const std::filesystem::path& directory);
  // Reads a new adapter for an existing name, into a free slot, or in place if the old one has no users. Running
  // sequences continue with the old one. If the new one cannot be read, the old one stays, unless it was overwritten in
  // place.
  void replace(const std::string& name, const std::filesystem::path& directory);
  // Returns false when there is no adapter with that name. New requests do not find it; running ones continue with it.
  bool unload(const std::string& name);

  // Asks for every adapter to be read again from its folder, as soon as a slot is free or its own has no users.
  void ask_reload();
  // Reads the adapters that were asked for and can be read now. Returns lines for the log.
  std::vector<std::string> reload();

 private:
  std::shared_ptr<ServedAdapter>* named(const std::string& name);
  int32_t free_slot() const;
  void fill(std::shared_ptr<ServedAdapter> adapter);
  bool is_unused(const std::string& name);
  bool fill_in_place(const std::string& name, const std::filesystem::path& directory);
  bool try_replace(const std::string& name, const std::filesystem::path& directory);

  const SlotFiller filler_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ServedAdapter>> adapters_;  // sorted by name
  std::vector<std::weak_ptr<ServedAdapter>> slots_;
  std::vector<std::string> to_reload_;
  int32_t last_prefix_ = -1;
};

}  // namespace headroom
