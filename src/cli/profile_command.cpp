#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/process_memory.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "device/device.h"
#include "engine/processor_remark.h"
#include "formats/atomic_dir.h"
#include "planner/estimates.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/calibrate/disk_rates.h"
#include "train/budget.h"
#include "train/setup.h"

namespace headroom {
namespace {

struct ProfileArguments {
  std::string device = "cpu";
  std::string output;
  std::string disk;
  int threads = 0;
};

// Of the named directory, else of the one that the profile is written to, where it can be done.
void add_disk_rates(const ProfileArguments& arguments, const std::filesystem::path& written, Profile& profile) {
  try {
    const DiskRates rates =
        measure_disk(arguments.disk.empty() ? written.parent_path() : std::filesystem::path(arguments.disk));
    profile.disk_read_bytes_per_second = rates.read_bytes_per_second;
    profile.disk_write_bytes_per_second = rates.write_bytes_per_second;
  } catch (const Error& error) {
    if (!arguments.disk.empty()) throw;
    print_note(fmt::format("note: no disk was measured ({}); give --disk DIR", error.what()));
  }
}

Profile measure(const ProfileArguments& arguments) {
  const std::optional<int> gpu = cuda_index(arguments.device);
  if (!gpu && device_kind(arguments.device) != DeviceKind::cpu)
    throw Error(ErrorKind::usage, fmt::format("--device {} cannot be measured", arguments.device), "use cpu or cuda:0");
  const int64_t before = peak_resident_bytes();
  const DeviceFacts facts =
      gpu ? cuda_facts(*gpu) : cpu_facts(arguments.threads > 0 ? arguments.threads : available_threads());
  set_threads(facts.threads);
  print_remark(processor_remark(arguments.device, facts.threads));
  const std::unique_ptr<Device> device = open_device(arguments.device, facts);
  const bool terminal = ::isatty(STDERR_FILENO);
  const auto progress = [&](double share) {
    if (terminal) write_stderr(fmt::format("\rmeasuring {:3.0f}%", share * 100));
  };
  Profile profile = calibrate(*device, facts, gpu ? fmt::format("cuda-{}", *gpu) : "this-machine", progress,
                              gpu ? gpu_sizes() : cpu_sizes(), gpu ? clock_reading : process_reading);
  if (terminal) write_stderr("\n");
  if (const std::string remark = device->remark(); !remark.empty()) print_note(remark);
  if (gpu) profile.host_context_bytes = std::max<int64_t>(0, peak_resident_bytes() - before - kCudaWindowBytes);
  return profile;
}

int run_profile(const ProfileArguments& arguments) {
  Profile profile = measure(arguments);
  const std::filesystem::path cache = cached_profile_path(cuda_index(arguments.device));
  const std::filesystem::path path = arguments.output.empty() ? cache : std::filesystem::path(arguments.output);
  if (path.empty()) throw Error(ErrorKind::usage, "there is no home directory for the cached profile", "give -o FILE");
  std::error_code status;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), status);
  add_disk_rates(arguments, std::filesystem::absolute(path), profile);
  write_text_durably(path, profile_json(profile));
  if (!arguments.output.empty() && !cache.empty()) {
    // A cache that cannot be written is no error.
    std::filesystem::create_directories(cache.parent_path(), status);
    try {
      if (!status) write_text_durably(cache, profile_json(profile));
    } catch (const Error&) {
      print_note(fmt::format("note: {} cannot be written", cache.string()));
    }
  }
  print_note(fmt::format("wrote {}", path.string()));
  print_remark(profile.remark());
  if (const std::string unmeasured = estimates(profile); !unmeasured.empty()) print_note("note: " + unmeasured);
  return 0;
}

}  // namespace

Command profile_command() {
  return {
      "profile", "measure this machine, or a GPU of it, into a profile (30 s at most)", [](CLI::App& app) {
        auto arguments = std::make_shared<ProfileArguments>();
        scalar(app, "--device", arguments->device, "what to measure: cpu or cuda:N")->capture_default_str();
        scalar(app, "-o,--output", arguments->output, "profile file (the cached one)");
        scalar(app, "--disk", arguments->disk, "directory whose disk is measured (the profile's)")->type_name("DIR");
        scalar(app, "--threads", arguments->threads, "threads (as many as it may use CPUs)");
        return [arguments] { return run_profile(*arguments); };
      }};
}

}  // namespace headroom
