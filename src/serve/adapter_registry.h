// The LoRA adapters that a server knows by name, and the slots of the arena that hold them.
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

// Held by what uses the adapter: its slot keeps its contents until nobody does.
using AdapterUse = std::shared_ptr<const ServedAdapter>;

// What a sequence of the adapter is asked for with; of none: the base.
SequenceAdapter sequence_adapter(const AdapterUse& use);

// How slots are filled; called on the thread that steps. Both throw Error for files that do not fit.
struct SlotFiller {
  std::function<void(const std::filesystem::path&)> check;
  std::function<void(int64_t slot, const std::filesystem::path&)> load;
};

// A slot is free when no name and no sequence uses it. find() and all() are called by any thread, the rest by the one
// that steps.
class AdapterRegistry {
 public:
  AdapterRegistry(int64_t slots, SlotFiller filler);

  // Null where there is no adapter of that name.
  AdapterUse find(const std::string& name) const;
  // By name.
  std::vector<AdapterUse> all() const;

  // Reads the adapter into a free slot. Throws ApiError(503) where none is free, Error as the filler.
  void load(const std::string& name, const std::filesystem::path& directory);
  // The same for a name that is there, whose running sequences go on with what they began with: into a free slot, or in
  // place where nobody uses it. Where it cannot be read the old one stays, unless it was cut while it was being read.
  void replace(const std::string& name, const std::filesystem::path& directory);
  // False where there is none of that name. New requests do not find it; running ones end on it.
  bool unload(const std::string& name);

  // Every adapter is to be read again from its folder, as soon as a slot is free or nobody uses its own.
  void ask_reload();
  // Reads what has been asked for and can be read now. Lines for the log.
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
  std::vector<std::shared_ptr<ServedAdapter>> adapters_;  // by name
  std::vector<std::weak_ptr<ServedAdapter>> slots_;
  std::vector<std::string> to_reload_;
  int32_t last_prefix_ = -1;
};

}  // namespace headroom
