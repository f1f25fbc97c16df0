#include "device/devices.h"

#include <charconv>

#include "base/error.h"
#include "ops/backend.h"

namespace headroom {

void register_all_devices(Devices& devices);  // generated

namespace {

struct Named {
  const DeviceFactory& factory;
  int index = 0;
};

[[noreturn]] void refuse(std::string_view device) {
  std::string accelerators;
  for (const auto& factory : devices().all())
    if (factory->kind() == DeviceKind::accelerator) accelerators += fmt::format("{}:0, ", factory->name());
  throw Error(ErrorKind::usage, fmt::format("--device {} is not known", device),
              fmt::format("use cpu, {}or null to plan and check without arithmetic", accelerators));
}

int device_number(std::string_view device, std::string_view name) {
  const std::string_view number = device.substr(name.size() + 1);
  int index = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (error != std::errc{} || end != number.data() + number.size() || index < 0)
    throw Error(ErrorKind::usage, fmt::format("--device {}: '{}' is not a device number", device, number),
                fmt::format("use {}:0", name));
  return index;
}

Named named(std::string_view device) {
  const std::string_view name = device.substr(0, device.find(':'));
  const DeviceFactory* const factory = devices().find(name);
  if (!factory || (name != device && factory->kind() != DeviceKind::accelerator)) refuse(device);
  return {*factory, name == device ? 0 : device_number(device, name)};
}

}  // namespace

DeviceFacts DeviceFactory::facts(int, int) const { throw InternalError(fmt::format("{} has no facts", name())); }
DeviceMemory DeviceFactory::memory(int) const { throw InternalError(fmt::format("{} has no memory", name())); }

void Devices::add(std::unique_ptr<DeviceFactory> factory) {
  HR_CHECK(!find(factory->name()), "device {} is registered twice", factory->name());
  all_.push_back(std::move(factory));
}

const DeviceFactory* Devices::find(std::string_view name) const {
  for (const auto& factory : all_)
    if (factory->name() == name) return factory.get();
  return nullptr;
}

const Devices& devices() {
  static const Devices built = [] {
    Devices all;
    register_all_devices(all);
    return all;
  }();
  return built;
}

DeviceKind device_kind(std::string_view device) { return named(device).factory.kind(); }

std::string accelerator_label(std::string_view device) {
  const Named found = named(device);
  if (found.factory.kind() != DeviceKind::accelerator) return {};
  return fmt::format("{}-{}", found.factory.name(), found.index);
}

DeviceFacts facts_of_device(std::string_view device, int threads) {
  const Named found = named(device);
  return found.factory.facts(found.index, threads);
}

DeviceMemory memory_of_device(std::string_view device) {
  const Named found = named(device);
  return found.factory.memory(found.index);
}

std::unique_ptr<Device> open_device(std::string_view device, const DeviceFacts& facts,
                                    const std::filesystem::path& disk) {
  const Named found = named(device);
  return found.factory.open(found.index, facts, disk);
}

int64_t window_bytes(const DeviceFacts& facts) { return backend_of(facts).window_bytes(); }
int64_t graph_bytes(const DeviceFacts& facts) { return backend_of(facts).graph_bytes(); }
std::string describe_capabilities(const DeviceFacts& facts) { return backend_of(facts).describe(facts.capabilities); }

}  // namespace headroom
