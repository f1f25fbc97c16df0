#include <charconv>

#include "base/error.h"
#include "device/device.h"

namespace headroom {

std::optional<int> cuda_index(std::string_view device) {
  if (device == "cuda") return 0;
  if (!device.starts_with("cuda:")) return std::nullopt;
  const std::string_view number = device.substr(5);
  int index = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (error != std::errc{} || end != number.data() + number.size() || index < 0)
    throw Error(ErrorKind::usage, fmt::format("--device {}: '{}' is no device number", device, number), "use cuda:0");
  return index;
}

DeviceKind device_kind(std::string_view device) {
  if (device == "cpu") return DeviceKind::cpu;
  if (device == "null") return DeviceKind::null;
  if (cuda_index(device)) return DeviceKind::cuda;
  throw Error(ErrorKind::usage, fmt::format("--device {} is not known", device),
              "use cpu, cuda:0, or null to plan and check without arithmetic");
}

std::unique_ptr<Device> open_device(std::string_view device, const DeviceFacts& facts,
                                    const std::filesystem::path& disk) {
  switch (device_kind(device)) {
    case DeviceKind::cpu:
      return disk.empty() ? make_cpu_device(facts) : make_cpu_device_with_disk(facts, disk);
    case DeviceKind::cuda:
      return open_cuda_device(*cuda_index(device), facts, disk);
    case DeviceKind::null:
      return make_null_device(facts);
  }
  return nullptr;
}

}  // namespace headroom
