#include "serve/adapter_registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "serve/api_error.h"

namespace headroom {

SequenceAdapter sequence_adapter(const AdapterUse& use) {
  if (!use) return {};
  return {use->slot, use->prefix, use};
}

AdapterRegistry::AdapterRegistry(int64_t slots, SlotFiller filler)
    : filler_(std::move(filler)), slots_(static_cast<size_t>(slots)) {}

std::shared_ptr<ServedAdapter>* AdapterRegistry::named(const std::string& name) {
  const auto at = std::find_if(adapters_.begin(), adapters_.end(),
                               [&](const std::shared_ptr<ServedAdapter>& adapter) { return adapter->name == name; });
  return at == adapters_.end() ? nullptr : &*at;
}

AdapterUse AdapterRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<ServedAdapter>& adapter : adapters_)
    if (adapter->name == name) return adapter;
  return nullptr;
}

std::vector<AdapterUse> AdapterRegistry::all() const {
  const std::lock_guard lock(mutex_);
  return {adapters_.begin(), adapters_.end()};
}

int32_t AdapterRegistry::free_slot() const {
  const auto at = std::find_if(slots_.begin(), slots_.end(), [](const auto& slot) { return slot.expired(); });
  return at == slots_.end() ? -1 : static_cast<int32_t>(at - slots_.begin());
}

// No other thread can see the adapter yet.
void AdapterRegistry::fill(std::shared_ptr<ServedAdapter> adapter) {
  filler_.load(adapter->slot, adapter->directory);
  adapter->prefix = --last_prefix_;
  slots_[static_cast<size_t>(adapter->slot)] = adapter;
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<ServedAdapter>* const old = named(adapter->name)) {
    old->swap(adapter);
    return;
  }
  const auto at = std::lower_bound(adapters_.begin(), adapters_.end(), adapter,
                                   [](const std::shared_ptr<ServedAdapter>& a,
                                      const std::shared_ptr<ServedAdapter>& b) { return a->name < b->name; });
  adapters_.insert(at, std::move(adapter));
}

void AdapterRegistry::load(const std::string& name, const std::filesystem::path& directory) {
  const int32_t slot = free_slot();
  if (slot < 0)
    throw ApiError(503, fmt::format("the {} slots for adapters are in use: unload one, or start with --max-loras {}",
                                    slots_.size(), slots_.size() + 1));
  fill(std::make_shared<ServedAdapter>(ServedAdapter{name, directory, slot, -1}));
}

bool AdapterRegistry::is_unused(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<ServedAdapter>* const own = named(name);
  return own && own->use_count() == 1;
}

// Reads the files only if there is a slot for their contents.
bool AdapterRegistry::try_replace(const std::string& name, const std::filesystem::path& directory) {
  const int32_t slot = free_slot();
  if (slot < 0 && !is_unused(name)) return false;
  filler_.check(directory);
  if (slot >= 0) {
    fill(std::make_shared<ServedAdapter>(ServedAdapter{name, directory, slot, -1}));
    return true;
  }
  return fill_in_place(name, directory);
}

// Holds the lock, so that no thread finds the adapter meanwhile.
bool AdapterRegistry::fill_in_place(const std::string& name, const std::filesystem::path& directory) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ServedAdapter>* const own = named(name);
  if (!own || own->use_count() > 1) return false;
  try {
    filler_.load((*own)->slot, directory);
  } catch (...) {
    adapters_.erase(adapters_.begin() + (own - adapters_.data()));
    throw;
  }
  (*own)->directory = directory;
  (*own)->prefix = --last_prefix_;
  return true;
}

void AdapterRegistry::replace(const std::string& name, const std::filesystem::path& directory) {
  if (!try_replace(name, directory))
    throw ApiError(503, fmt::format("requests run on {}, and none of the {} slots is free", name, slots_.size()));
}

bool AdapterRegistry::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<ServedAdapter>* const adapter = named(name);
  if (!adapter) return false;
  adapters_.erase(adapters_.begin() + (adapter - adapters_.data()));
  return true;
}

void AdapterRegistry::ask_reload() {
  to_reload_.clear();
  for (const AdapterUse& adapter : all()) to_reload_.push_back(adapter->name);
}

std::vector<std::string> AdapterRegistry::reload() {
  std::vector<std::string> lines;
  std::erase_if(to_reload_, [&](const std::string& name) {
    try {
      AdapterUse adapter = find(name);
      if (!adapter) return true;
      const std::filesystem::path directory = adapter->directory;
      adapter.reset();  // otherwise it would count as in use
      if (!try_replace(name, directory)) return false;
      lines.push_back(fmt::format("adapter {} was read again", name));
    } catch (const std::exception& error) {
      lines.push_back(fmt::format("adapter {} was not read again: {}{}", name, error.what(),
                                  find(name) ? "; it stays as it was" : "; it is gone"));
    }
    return true;
  });
  return lines;
}

}  // namespace headroom
