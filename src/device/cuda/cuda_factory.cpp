#include "device/cuda/open_cuda.h"
#include "device/devices.h"

namespace headroom {
namespace {

class CudaFactory final : public DeviceFactory {
 public:
  std::string_view name() const override { return "cuda"; }
  DeviceKind kind() const override { return DeviceKind::accelerator; }
  std::unique_ptr<Device> open(int index, const DeviceFacts& facts, const std::filesystem::path& disk) const override {
    return open_cuda_device(index, facts, disk);
  }
  DeviceFacts facts(int index, int) const override { return cuda_facts(index); }
  DeviceMemory memory(int index) const override { return cuda_memory(index); }
};

}  // namespace

void register_cuda_device(Devices& devices);
void register_cuda_device(Devices& devices) { devices.add(std::make_unique<CudaFactory>()); }

}  // namespace headroom
