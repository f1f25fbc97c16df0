#include "engine/measure_profile.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/process_memory.h"
#include "base/threads.h"
#include "device/device.h"
#include "engine/budget.h"
#include "engine/processor_remark.h"
#include "formats/atomic_dir.h"
#include "planner/estimates.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/calibrate/disk_rates.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

void say(const ProfileEvents& events, const std::string& text) {
  if (events.note && !text.empty()) events.note(text);
}

Profile measure(const ProfileOptions& options, const ProfileEvents& events) {
  const bool gpu = device_kind(options.device) == DeviceKind::accelerator;
  if (!gpu && device_kind(options.device) != DeviceKind::cpu)
    throw Error(ErrorKind::usage, fmt::format("--device {} cannot be measured", options.device), "use cpu or cuda:0");
  const int64_t before = peak_resident_bytes();
  const DeviceFacts facts =
      facts_of_device(options.device, options.threads > 0 ? options.threads : available_threads());
  set_threads(facts.threads);
  say(events, processor_remark(options.device, facts.threads));
  const std::unique_ptr<Device> device = open_device(options.device, facts);
  const auto progress = [&](double share) {
    if (events.progress) events.progress(share);
  };
  Profile profile = calibrate(*device, facts, gpu ? accelerator_label(options.device) : "this-machine", progress,
                              gpu ? gpu_sizes() : cpu_sizes(), gpu ? clock_reading : process_reading);
  say(events, device->remark());
  if (gpu) profile.host_context_bytes = std::max<int64_t>(0, peak_resident_bytes() - before - window_bytes(facts));
  return profile;
}

// The rates of the named directory's disk, else of the one to which the profile is written, if that can be measured.
void add_disk_rates(const ProfileOptions& options, const fs::path& written, Profile& profile,
                    const ProfileEvents& events) {
  try {
    const DiskRates rates = measure_disk(options.disk.empty() ? written.parent_path() : options.disk);
    profile.disk_read_bytes_per_second = rates.read_bytes_per_second;
    profile.disk_write_bytes_per_second = rates.write_bytes_per_second;
  } catch (const Error& error) {
    if (!options.disk.empty()) throw;
    say(events, fmt::format("note: no disk was measured ({}); give --disk DIR", error.what()));
  }
}

// A cache that cannot be written is not an error.
void write_cache(const fs::path& cache, const Profile& profile, const ProfileEvents& events) {
  std::error_code status;
  fs::create_directories(cache.parent_path(), status);
  if (status) return;
  try {
    write_text_durably(cache, profile_json(profile));
  } catch (const Error&) {
    say(events, fmt::format("note: {} cannot be written", cache.string()));
  }
}

}  // namespace

MeasuredProfile measure_profile(const ProfileOptions& options, const ProfileEvents& events) {
  MeasuredProfile measured{measure(options, events), options.output};
  const fs::path cache = cached_profile_path(accelerator_label(options.device));
  if (measured.path.empty()) measured.path = cache;
  if (measured.path.empty())
    throw Error(ErrorKind::usage, "there is no home directory for the cached profile", "give -o FILE");
  std::error_code status;
  if (measured.path.has_parent_path()) fs::create_directories(measured.path.parent_path(), status);
  add_disk_rates(options, fs::absolute(measured.path), measured.profile, events);
  write_text_durably(measured.path, profile_json(measured.profile));
  if (!options.output.empty() && !cache.empty()) write_cache(cache, measured.profile, events);
  say(events, fmt::format("wrote {}", measured.path.string()));
  say(events, measured.profile.remark());
  say(events, estimates_note(measured.profile));
  return measured;
}

}  // namespace headroom
