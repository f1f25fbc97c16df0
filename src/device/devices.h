// How a backend's devices on this machine are opened. This is the running half of a backend; ops/backend.h has the
// planning half, with the same name.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace headroom {

class DeviceFactory {
 public:
  virtual ~DeviceFactory() = default;
  // The name for --device; a number may follow for accelerators.
  virtual std::string_view name() const = 0;
  virtual DeviceKind kind() const = 0;
  // Like open_device, for device `index`, which is 0 unless it is an accelerator.
  virtual std::unique_ptr<Device> open(int index, const DeviceFacts& facts,
                                       const std::filesystem::path& disk) const = 0;
  // Like facts_of_device and memory_of_device. The defaults throw InternalError.
  virtual DeviceFacts facts(int index, int threads) const;
  virtual DeviceMemory memory(int index) const;
};

class Devices {
 public:
  // Throws InternalError when the name is taken.
  void add(std::unique_ptr<DeviceFactory> factory);
  // Null when there is none with that name.
  const DeviceFactory* find(std::string_view name) const;
  std::span<const std::unique_ptr<DeviceFactory>> all() const { return all_; }

 private:
  std::vector<std::unique_ptr<DeviceFactory>> all_;
};

// The factories of this build, created once by generated calls of register_NAME_device(Devices&). Thread-safe.
const Devices& devices();

}  // namespace headroom
